//! The catalogue for code: a `.d.ts` for TypeScript, a `.pyi` for Python, and a short description of one
//! tool for a model.
//!
//! All three come from one reading of the schemas ([`crate::schema`]), never fail, and contain a
//! server's text only in comments and quotes. The wrappers are only types: the host resolves the name that
//! guest code writes.

mod describe;
mod names;
mod outline;
mod python;
mod text;
mod typescript;

pub use describe::describe;
pub use outline::ValueShapes;
pub use python::python;
pub use typescript::typescript;

#[cfg(test)]
mod tests;
