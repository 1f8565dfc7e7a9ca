//! Refuses modules to code that is built at run time, where `import()` is not rewritten.

use std::rc::Rc;

use belljar_contract::ErrorCode;
use belljar_wire::Event;
use rquickjs::{
    Constructor, Ctx, Error, Exception, Module, Object, Result, Runtime,
    loader::{ImportAttributes, Loader, Resolver},
    module::Declared,
};

use super::{current_run::CurrentRun, hints, node_modules};

/// Has every `import` of this runtime end in a `PermissionError`.
pub(super) fn refuse_all(runtime: &Runtime, current: &Rc<CurrentRun>) {
    runtime.set_loader(
        ModuleRefuser { current: current.clone() },
        ModuleRefuser { current: current.clone() },
    );
}

#[derive(Debug)]
struct ModuleRefuser {
    current: Rc<CurrentRun>,
}

impl Resolver for ModuleRefuser {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        _base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        self.current.send(&Event::Denied { attempt: format!("import(\"{name}\")") });
        // No handle is kept: the loader is dropped after the runtime. Guest code may have taken
        // the name for something else.
        let Ok(class) = ctx.globals().get::<_, Constructor>("PermissionError") else {
            return Err(Exception::throw_message(ctx, &hints::module_refused(name)));
        };
        let options = Object::new(ctx.clone())?;
        options.set("code", ErrorCode::PermissionModule.as_str())?;
        options.set("hint", node_modules::hint_for(name))?;
        Err(ctx.throw(class.construct((hints::module_refused(name), options))?))
    }
}

impl Loader for ModuleRefuser {
    fn load<'js>(
        &mut self,
        _ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        Err(Error::new_loading(name))
    }
}
