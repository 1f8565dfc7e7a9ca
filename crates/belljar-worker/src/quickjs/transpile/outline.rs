//! Functions, calls and loops of the source, to say better where an error happened.
//!
//! QuickJS reports a call at the last name it evaluated before it, usually in the last argument,
//! a loop without names in it at the last name before the loop, and a missing function just as
//! "not a function". The source knows better.

use oxc::{
    allocator::Allocator,
    ast::ast::{
        ArrowFunctionExpression, CallExpression, Class, DoWhileStatement, Expression,
        ForInStatement, ForOfStatement, ForStatement, Function, IdentifierReference, NewExpression,
        WhileStatement,
    },
    ast_visit::{Visit, walk},
    semantic::ScopeFlags,
    span::{GetSpan, Span},
};

use super::{SourceCode, parse};

/// A function or call that errors can come from. Offsets are in bytes.
#[derive(Debug, Default)]
pub(in crate::quickjs) struct SourceOutline {
    /// The whole program is the first one; each comes before those in it.
    functions: Vec<Span>,
    calls: Vec<CallSite>,
    loops: Vec<LoopSpan>,
}

/// One call, or one `new`.
#[derive(Debug, Clone)]
pub(in crate::quickjs) struct CallSite {
    span: Span,
    callee: Span,
    /// Its name in stacks: `new`, the method's name, or the callee.
    place: u32,
    /// The last name that is evaluated before the call is made.
    last_name: u32,
    function: usize,
}

#[derive(Debug)]
struct LoopSpan {
    span: Span,
    function: usize,
}

impl CallSite {
    /// Where stacks show it.
    pub(in crate::quickjs) fn place(&self) -> usize {
        self.place as usize
    }

    /// The callee as it stands in the source.
    pub(in crate::quickjs) fn callee<'s>(&self, source: &'s SourceCode) -> &'s str {
        let Span { start, end, .. } = self.callee;
        source.text.get(start as usize..end as usize).unwrap_or_default()
    }
}

impl SourceOutline {
    /// Reads the source once more.
    pub(in crate::quickjs) fn draw(source: &SourceCode) -> Self {
        let allocator = Allocator::default();
        let program = parse(&allocator, &source.text, source.source_type()).program;
        let mut visitor = Visitor { outline: Self::default(), function: 0, last_name: 0 };
        visitor.outline.functions.push(program.span);
        visitor.visit_program(&program);
        visitor.outline
    }

    /// The calls that come next once the name at this offset is read, innermost first.
    pub(in crate::quickjs) fn calls_after(&self, offset: usize) -> impl Iterator<Item = &CallSite> {
        let offset = u32::try_from(offset).unwrap_or(u32::MAX);
        let function = self.function_at(offset);
        self.calls.iter().filter(move |call| {
            call.function == function && holds(call.span, offset) && call.last_name <= offset
        })
    }

    /// The loop that runs once the name at this offset is read, unless that is in a loop itself.
    pub(in crate::quickjs) fn loop_after(&self, offset: usize) -> Option<usize> {
        let offset = u32::try_from(offset).unwrap_or(u32::MAX);
        let function = self.function_at(offset);
        if self.loops.iter().any(|one| one.function == function && holds(one.span, offset)) {
            return None;
        }
        let next = |is_meant: &dyn Fn(&LoopSpan) -> bool| {
            let starts = self.loops.iter().filter(|one| is_meant(one)).map(|one| one.span.start);
            starts.filter(|start| *start >= offset).min()
        };
        // A function without any name in it is reported where it is made.
        let start = next(&|one| one.function == function).or_else(|| next(&|_| true))?;
        Some(start as usize)
    }

    /// The innermost function around an offset.
    fn function_at(&self, offset: u32) -> usize {
        self.functions.iter().rposition(|span| holds(*span, offset)).unwrap_or_default()
    }
}

fn holds(span: Span, offset: u32) -> bool {
    span.start <= offset && offset < span.end
}

struct Visitor {
    outline: SourceOutline,
    function: usize,
    /// The last name so far, within the current function.
    last_name: u32,
}

impl Visitor {
    fn call(
        &mut self,
        span: Span,
        callee: &Expression<'_>,
        place: u32,
        walk: impl FnOnce(&mut Self),
    ) {
        walk(self);
        let (callee, last_name, function) = (callee.span(), self.last_name, self.function);
        self.outline.calls.push(CallSite { span, callee, place, last_name, function });
    }

    fn function(&mut self, span: Span, walk: impl FnOnce(&mut Self)) {
        let (outer, name) = (self.function, self.last_name);
        self.function = self.outline.functions.len();
        self.outline.functions.push(span);
        walk(self);
        (self.function, self.last_name) = (outer, name);
    }

    fn note_loop(&mut self, span: Span) {
        self.outline.loops.push(LoopSpan { span, function: self.function });
    }
}

impl<'a> Visit<'a> for Visitor {
    fn visit_identifier_reference(&mut self, name: &IdentifierReference<'a>) {
        self.last_name = name.span.start;
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        let mut method = None;
        if let Expression::StaticMemberExpression(member) = &call.callee {
            method = Some(member.property.span.start);
        }
        let place = method.unwrap_or(call.callee.span().start);
        self.call(call.span, &call.callee, place, |visitor| {
            visitor.visit_expression(&call.callee);
            // Properties are not places of their own, but methods are.
            visitor.last_name = method.unwrap_or(visitor.last_name);
            visitor.visit_arguments(&call.arguments);
        });
    }

    fn visit_new_expression(&mut self, new: &NewExpression<'a>) {
        self.call(new.span, &new.callee, new.span.start, |visitor| {
            walk::walk_new_expression(visitor, new);
        });
    }

    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        self.function(function.span, |visitor| walk::walk_function(visitor, function, flags));
    }

    fn visit_arrow_function_expression(&mut self, arrow: &ArrowFunctionExpression<'a>) {
        self.function(arrow.span, |visitor| {
            walk::walk_arrow_function_expression(visitor, arrow);
        });
    }

    fn visit_class(&mut self, class: &Class<'a>) {
        self.function(class.span, |visitor| walk::walk_class(visitor, class));
    }

    fn visit_while_statement(&mut self, statement: &WhileStatement<'a>) {
        self.note_loop(statement.span);
        walk::walk_while_statement(self, statement);
    }

    fn visit_do_while_statement(&mut self, statement: &DoWhileStatement<'a>) {
        self.note_loop(statement.span);
        walk::walk_do_while_statement(self, statement);
    }

    fn visit_for_statement(&mut self, statement: &ForStatement<'a>) {
        self.note_loop(statement.span);
        walk::walk_for_statement(self, statement);
    }

    fn visit_for_in_statement(&mut self, statement: &ForInStatement<'a>) {
        self.note_loop(statement.span);
        walk::walk_for_in_statement(self, statement);
    }

    fn visit_for_of_statement(&mut self, statement: &ForOfStatement<'a>) {
        self.note_loop(statement.span);
        walk::walk_for_of_statement(self, statement);
    }
}
