// refused: module "zod" cannot be imported ... typeof
import { z } from "zod";
const User = z.object({ name: z.string(), age: z.number().int().positive() });
console.log(User.safeParse({ name: "x", age: -1 }).success);
