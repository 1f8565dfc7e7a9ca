# refused: eval() is refused ... ast.literal_eval
expression = "2 * (3 + 4)"
print(eval(expression))
