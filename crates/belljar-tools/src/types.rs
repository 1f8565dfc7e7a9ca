//! What code sees of the catalogue: a `.d.ts` for TypeScript, a `.pyi` for Python, and a few lines
//! for a model about one tool.
//!
//! All three come from one reading of the schemas ([`crate::schema`]), never fail, and hold nothing
//! a server wrote outside of comments and quoted texts. Wrappers are only types: a call goes by the
//! name guest code writes, which the host resolves.

mod describe;
mod names;
mod outline;
mod python;
mod text;
mod typescript;

pub use describe::describe;
pub use outline::Shapes;
pub use python::python;
pub use typescript::typescript;

#[cfg(test)]
mod tests;
