//! The engines, driven as a cell drives them.

mod bash_cell;
mod bash_errors;
mod bash_output;
mod bash_refused;
mod bash_values;
mod fs_errors;
mod fs_files;
mod fs_modules;
mod guest_console;
mod guest_data;
mod guest_docs;
mod guest_on_demand;
mod guest_tables;
mod guest_web;
mod harness;
mod quickjs_denied;
mod quickjs_errors;
mod quickjs_language;
mod quickjs_limits;
mod quickjs_output;
mod quickjs_places;
mod quickjs_robust;
mod quickjs_syntax;
mod quickjs_timers;
mod quickjs_values;
