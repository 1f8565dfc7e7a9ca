// A program to run side by side with Node: uncaught error.
class ValidationError extends Error { constructor(field) { super(`${field} is required`); this.name = "ValidationError"; this.field = field; } }
const validate = (user) => { for (const f of ["name", "email"]) if (!user[f]) throw new ValidationError(f); };
console.log("before");
validate({ name: "x" });
