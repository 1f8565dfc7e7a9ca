// refused: module "lodash" cannot be imported ... data.groupBy
const _ = require("lodash");
const users = [{ name: "a", age: 3 }, { name: "b", age: 3 }];
console.log(_.chain(users).groupBy("age").mapValues((v) => v.length).value());
