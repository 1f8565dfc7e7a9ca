import { EventEmitter, once } from "node:events";
type Order = { id: number; total: number };
class Shop extends EventEmitter {
  place(order: Order) { this.emit("order", order); if (order.total > 100) this.emit("big", order, Date.now() > 0); return this; }
}
const shop = new Shop();
shop.on("order", (order: Order) => console.log("got", order)).once("big", (order, late) => console.log("big one", order.id, late));
shop.prependListener("order", () => console.log("first"));
const waited = once(shop, "closed");
shop.place({ id: 1, total: 50 }).place({ id: 2, total: 500 }).place({ id: 3, total: 501 });
setTimeout(() => shop.emit("closed", "bye"), 1);
console.log(await waited, shop.listenerCount("order"), shop.eventNames(), shop.emit("nobody"));
try { shop.emit("error", new Error("unheard")); } catch (e) { console.log((e as Error).message); }
shop.removeAllListeners();
console.log(shop.eventNames());
