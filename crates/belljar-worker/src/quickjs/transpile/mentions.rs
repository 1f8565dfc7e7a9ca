//! How often names are mentioned as values: what is never mentioned is not needed.
//!
//! By name alone: where another variable of the same name is meant, the answer is too high, and
//! then what might not be needed is kept.

use std::collections::HashMap;

use oxc::{
    ast::ast::{
        IdentifierReference, Program, TSClassImplements, TSInterfaceDeclaration, TSType,
        TSTypeAliasDeclaration, TSTypeAnnotation, TSTypeParameterDeclaration,
        TSTypeParameterInstantiation,
    },
    ast_visit::Visit,
};

/// Counts the mentions of each name, those in types left out.
pub(super) fn count(program: &Program<'_>) -> HashMap<String, usize> {
    let mut visitor = Visitor::default();
    visitor.visit_program(program);
    visitor.counts
}

#[derive(Default)]
struct Visitor {
    counts: HashMap<String, usize>,
}

impl<'a> Visit<'a> for Visitor {
    fn visit_identifier_reference(&mut self, name: &IdentifierReference<'a>) {
        *self.counts.entry(name.name.to_string()).or_default() += 1;
    }

    fn visit_ts_type(&mut self, _: &TSType<'a>) {}
    fn visit_ts_type_annotation(&mut self, _: &TSTypeAnnotation<'a>) {}
    fn visit_ts_type_parameter_instantiation(&mut self, _: &TSTypeParameterInstantiation<'a>) {}
    fn visit_ts_type_parameter_declaration(&mut self, _: &TSTypeParameterDeclaration<'a>) {}
    fn visit_ts_interface_declaration(&mut self, _: &TSInterfaceDeclaration<'a>) {}
    fn visit_ts_type_alias_declaration(&mut self, _: &TSTypeAliasDeclaration<'a>) {}
    fn visit_ts_class_implements(&mut self, _: &TSClassImplements<'a>) {}
}
