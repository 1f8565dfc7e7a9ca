abstract class Shape {
  static #made = 0;
  readonly id: number;
  constructor(protected readonly name: string) { this.id = ++Shape.#made; }
  abstract area(): number;
  get label(): string { return `${this.name}#${this.id}`; }
  toString(): string { return `${this.label} (${this.area().toFixed(2)})`; }
  toJSON() { return { label: this.label, area: Number(this.area().toFixed(3)) }; }
}
class Circle extends Shape {
  constructor(private radius: number) { super("circle"); }
  area() { return Math.PI * this.radius ** 2; }
}
class Rectangle extends Shape {
  constructor(public width: number, public height: number, name = "rectangle") { super(name); }
  area() { return this.width * this.height; }
  set size([w, h]: [number, number]) { this.width = w; this.height = h; }
}
class Square extends Rectangle { constructor(side: number) { super(side, side, "square"); } }
const shapes: Shape[] = [new Circle(1.5), new Rectangle(2, 3), new Square(4)];
(shapes[1] as Rectangle).size = [5, 6];
for (const shape of shapes) console.log(`${shape}`, shape instanceof Rectangle, shape.constructor.name);
console.log(JSON.stringify(shapes));
console.log(shapes[2], Object.getOwnPropertyNames(Square.prototype));
