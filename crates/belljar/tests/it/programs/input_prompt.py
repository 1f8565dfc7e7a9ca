# refused: input() is refused ... `context`
name = input("What is your name? ")
print("Hello", name)
