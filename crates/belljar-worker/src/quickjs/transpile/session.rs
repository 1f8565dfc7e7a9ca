//! Names that outlive a run: in a session, declarations at the top level become global.
//!
//! A declaration becomes an assignment to an undeclared name, which in sloppy code is a property of
//! the global object: so it exists in the next run, may be declared again as anything, and
//! functions of earlier runs see its present value. Functions are assigned first, as they are
//! hoisted; names that `var` declares must exist from the start, and are returned to the caller
//! ([`PredeclaredNames`]).

#![expect(clippy::wildcard_enum_match_arm, reason = "only declarations are rewritten here")]

mod targets;

use std::collections::BTreeSet;

use oxc::{
    allocator::{Allocator, ArenaBox, ArenaVec, TakeIn},
    ast::{
        ast::{
            AssignmentOperator, AssignmentTarget, BindingIdentifier, BindingPattern, Class,
            ClassType, Expression, ForInStatement, ForOfStatement, ForStatement, ForStatementInit,
            ForStatementLeft, Function, FunctionType, Program, Statement, VariableDeclaration,
            VariableDeclarationKind,
        },
        builder::AstBuilder,
    },
    ast_visit::{VisitMut, walk_mut},
    semantic::{ScopeFlags, Scoping},
    span::{GetSpanMut, Span},
};

use super::{IMPORT_PARAMETER, modules::statement_at};
use targets::{bound_names, target};

/// Names that must be there before the code runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::quickjs) struct PredeclaredNames {
    /// Undefined, unless an earlier run has left something there.
    pub(in crate::quickjs) declared: BTreeSet<String>,
    /// Undefined in any case.
    pub(in crate::quickjs) renewed: BTreeSet<String>,
}

/// The facts about top-level names that are needed before types are stripped.
#[derive(Debug, Default)]
pub(super) struct TopLevelNames {
    /// Enumerations: stripped of its type, one adds to the object that has its name already.
    enums: BTreeSet<String>,
    /// Constants the code assigns to. They stay constants, so that the assignment is an error.
    violated: BTreeSet<String>,
}

impl TopLevelNames {
    /// Looks at the top level.
    pub(super) fn find(program: &Program<'_>, scoping: &Scoping) -> Self {
        let enums = program.body.iter().filter_map(|statement| match statement {
            Statement::TSEnumDeclaration(one) => Some(one.id.name.to_string()),
            _ => None,
        });
        let symbols = scoping.iter_bindings_in(scoping.root_scope_id());
        let violated = symbols
            .filter(|symbol| scoping.symbol_flags(*symbol).is_const_variable())
            .filter(|symbol| scoping.get_resolved_references(*symbol).any(|one| one.is_write()))
            .map(|symbol| scoping.symbol_name(symbol).to_owned());
        Self { enums: enums.collect(), violated: violated.collect() }
    }
}

/// Rewrites the declarations of the top level.
pub(super) fn share<'a>(
    program: &mut Program<'a>,
    names: TopLevelNames,
    allocator: &'a Allocator,
    builder: &AstBuilder<'a>,
) -> PredeclaredNames {
    let mut sharing =
        GlobalRewriter { builder, ahead: PredeclaredNames::default(), assigned: BTreeSet::new() };
    let mut functions = ArenaVec::new_in(builder);
    let mut others = ArenaVec::new_in(builder);
    for mut statement in program.body.take_in(builder) {
        let keeping = names.keeping(&statement, allocator);
        match &mut statement {
            Statement::FunctionDeclaration(function) => {
                functions.extend(sharing.function(function))
            }
            _ if keeping.is_some() => {
                others.push(statement);
                others.extend(keeping);
            }
            _ => {
                sharing.visit_top(&mut statement);
                others.push(statement);
            }
        }
    }
    functions.extend(others);
    program.body = functions;
    let GlobalRewriter { mut ahead, assigned, .. } = sharing;
    ahead.renewed = names.enums.intersection(&ahead.declared).cloned().collect();
    if program.has_use_strict_directive() {
        // Strict code may only assign to existing names.
        ahead.declared.extend(assigned);
    }
    ahead
}

impl TopLevelNames {
    /// For a declaration of a constant the code assigns to: the statement that makes its value
    /// global all the same.
    fn keeping<'a>(
        &self,
        statement: &Statement<'a>,
        allocator: &'a Allocator,
    ) -> Option<Statement<'a>> {
        let Statement::VariableDeclaration(declaration) = statement else { return None };
        let mut bound = BTreeSet::new();
        for declarator in &declaration.declarations {
            bound_names(&declarator.id, &mut bound);
        }
        if declaration.kind != VariableDeclarationKind::Const || bound.is_disjoint(&self.violated) {
            return None;
        }
        let bound: Vec<_> = bound.into_iter().collect();
        let text = format!("{IMPORT_PARAMETER}.keep({{ {} }});", bound.join(", "));
        statement_at(&text, declaration.span, allocator)
    }
}

struct GlobalRewriter<'a, 'b> {
    builder: &'b AstBuilder<'a>,
    ahead: PredeclaredNames,
    assigned: BTreeSet<String>,
}

impl<'a> GlobalRewriter<'a, '_> {
    /// A statement of the top level that is no function.
    fn visit_top(&mut self, statement: &mut Statement<'a>) {
        use VariableDeclarationKind as Kind;
        match statement {
            Statement::VariableDeclaration(declaration)
                if matches!(declaration.kind, Kind::Let | Kind::Const) =>
            {
                *statement = self.variables_statement(declaration);
            }
            Statement::ClassDeclaration(class) => {
                if let Some(assignment) = self.class(class) {
                    *statement = assignment;
                }
            }
            _ => self.visit_statement(statement),
        }
    }

    fn function(&mut self, function: &mut ArenaBox<'a, Function<'a>>) -> Option<Statement<'a>> {
        // Without its name in it: a call by its own name finds the current owner of the name.
        let name = function.id.take()?;
        function.r#type = FunctionType::FunctionExpression;
        let span = function.span;
        let value = Expression::FunctionExpression(function.take_in_box(self.builder));
        Some(self.assign_to_name(span, &name, value))
    }

    fn class(&mut self, class: &mut ArenaBox<'a, Class<'a>>) -> Option<Statement<'a>> {
        let name = class.id.as_ref()?;
        let name = BindingIdentifier::new(name.span, name.name, self.builder);
        class.r#type = ClassType::ClassExpression;
        let span = class.span;
        let value = Expression::ClassExpression(class.take_in_box(self.builder));
        Some(self.assign_to_name(span, &name, value))
    }

    fn assign_to_name(
        &mut self,
        span: Span,
        name: &BindingIdentifier<'a>,
        value: Expression<'a>,
    ) -> Statement<'a> {
        self.assigned.insert(name.name.to_string());
        let left =
            AssignmentTarget::new_assignment_target_identifier(name.span, name.name, self.builder);
        let assignment = self.assignment(span, left, value);
        Statement::new_expression_statement(span, assignment, self.builder)
    }

    fn assignment(
        &self,
        span: Span,
        left: AssignmentTarget<'a>,
        right: Expression<'a>,
    ) -> Expression<'a> {
        let operator = AssignmentOperator::Assign;
        Expression::new_assignment_expression(span, operator, left, right, self.builder)
    }

    fn variables_statement(&mut self, declaration: &mut VariableDeclaration<'a>) -> Statement<'a> {
        let span = declaration.span;
        match self.variables(declaration) {
            Some(value) => Statement::new_expression_statement(span, value, self.builder),
            None => Statement::new_empty_statement(span, self.builder),
        }
    }

    /// The assignments a declaration comes down to.
    fn variables(&mut self, declaration: &mut VariableDeclaration<'a>) -> Option<Expression<'a>> {
        let VariableDeclaration { span, kind, .. } = *declaration;
        let mut assignments = ArenaVec::new_in(self.builder);
        for mut declarator in declaration.declarations.take_in(self.builder) {
            self.note(&declarator.id, kind);
            let value = match (declarator.init.take(), kind) {
                (Some(value), _) => value,
                // A `var` that is declared again keeps its value.
                (None, VariableDeclarationKind::Var) => continue,
                (None, _) => Expression::new_void_0(declarator.span, self.builder),
            };
            // An error about a value that does not fit a pattern points to the declaration.
            let is_told = declarator.id.is_destructuring_pattern() && assignments.is_empty();
            let mut left = target(declarator.id, self.builder);
            let place = if is_told { span } else { declarator.span };
            if is_told {
                *left.span_mut() = place;
            }
            assignments.push(self.assignment(place, left, value));
        }
        if assignments.len() > 1 {
            return Some(Expression::new_sequence_expression(span, assignments, self.builder));
        }
        assignments.pop()
    }

    fn note(&mut self, pattern: &BindingPattern<'a>, kind: VariableDeclarationKind) {
        let is_hoisted = kind == VariableDeclarationKind::Var;
        let names = if is_hoisted { &mut self.ahead.declared } else { &mut self.assigned };
        bound_names(pattern, names);
    }

    /// The variable of a loop over something.
    fn looped(&mut self, left: &mut ForStatementLeft<'a>) {
        let ForStatementLeft::VariableDeclaration(declaration) = left else { return };
        if declaration.kind != VariableDeclarationKind::Var {
            return;
        }
        if let Some(declarator) = declaration.declarations.pop() {
            self.note(&declarator.id, VariableDeclarationKind::Var);
            *left = ForStatementLeft::from(target(declarator.id, self.builder));
        }
    }
}

/// Finds every `var` outside of functions, however deep in blocks and loops.
impl<'a> VisitMut<'a> for GlobalRewriter<'a, '_> {
    fn visit_statement(&mut self, statement: &mut Statement<'a>) {
        match statement {
            Statement::VariableDeclaration(declaration)
                if declaration.kind == VariableDeclarationKind::Var =>
            {
                *statement = self.variables_statement(declaration);
            }
            _ => walk_mut::walk_statement(self, statement),
        }
    }

    fn visit_for_statement(&mut self, statement: &mut ForStatement<'a>) {
        if let Some(ForStatementInit::VariableDeclaration(declaration)) = &mut statement.init
            && declaration.kind == VariableDeclarationKind::Var
        {
            statement.init = self.variables(declaration).map(ForStatementInit::from);
        }
        self.visit_statement(&mut statement.body);
    }

    fn visit_for_in_statement(&mut self, statement: &mut ForInStatement<'a>) {
        self.looped(&mut statement.left);
        self.visit_statement(&mut statement.body);
    }

    fn visit_for_of_statement(&mut self, statement: &mut ForOfStatement<'a>) {
        self.looped(&mut statement.left);
        self.visit_statement(&mut statement.body);
    }

    // A `var` in here is not one of the top level.
    fn visit_function(&mut self, _function: &mut Function<'a>, _flags: ScopeFlags) {}
    fn visit_class(&mut self, _class: &mut Class<'a>) {}
    fn visit_expression(&mut self, _expression: &mut Expression<'a>) {}
}
