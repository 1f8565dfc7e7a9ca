//! Values that are written as JSON in code.

/// A [`JsonValue`](crate::JsonValue) written as JSON, as with the macro of `serde_json`: keys keep their
/// order, and the values in it stay exact. A key is a literal or an expression in parentheses.
#[macro_export]
macro_rules! exact_json {
    (null) => { $crate::JsonValue::Null };
    ([ $($items:tt)* ]) => { $crate::JsonValue::Array($crate::exact_json!(@items [] $($items)*)) };
    ({}) => { $crate::JsonValue::Object($crate::JsonMap::new()) };
    ({ $($entries:tt)+ }) => {{
        let mut map = $crate::JsonMap::new();
        $crate::exact_json!(@entries map $($entries)+);
        $crate::JsonValue::Object(map)
    }};

    // Items of a list: `[done,]`, then what is left.
    (@items [$($done:expr,)*]) => { <[_]>::into_vec(Box::new([$($done,)*])) };
    (@items [$($done:expr,)*] null $(, $($rest:tt)*)?) => {
        $crate::exact_json!(@items [$($done,)* $crate::exact_json!(null),] $($($rest)*)?)
    };
    (@items [$($done:expr,)*] [$($list:tt)*] $(, $($rest:tt)*)?) => {
        $crate::exact_json!(@items [$($done,)* $crate::exact_json!([$($list)*]),] $($($rest)*)?)
    };
    (@items [$($done:expr,)*] {$($map:tt)*} $(, $($rest:tt)*)?) => {
        $crate::exact_json!(@items [$($done,)* $crate::exact_json!({$($map)*}),] $($($rest)*)?)
    };
    (@items [$($done:expr,)*] $item:expr $(, $($rest:tt)*)?) => {
        $crate::exact_json!(@items [$($done,)* $crate::exact_json!($item),] $($($rest)*)?)
    };

    // Entries of an object.
    (@entries $map:ident) => {};
    (@entries $map:ident ($key:expr) : $($rest:tt)+) => {
        $crate::exact_json!(@entry $map ($key) $($rest)+)
    };
    (@entries $map:ident $key:tt : $($rest:tt)+) => {
        $crate::exact_json!(@entry $map ($key) $($rest)+)
    };
    (@entry $map:ident ($key:expr) null $(, $($rest:tt)*)?) => {
        $map.insert(($key).into(), $crate::exact_json!(null));
        $crate::exact_json!(@entries $map $($($rest)*)?)
    };
    (@entry $map:ident ($key:expr) [$($list:tt)*] $(, $($rest:tt)*)?) => {
        $map.insert(($key).into(), $crate::exact_json!([$($list)*]));
        $crate::exact_json!(@entries $map $($($rest)*)?)
    };
    (@entry $map:ident ($key:expr) {$($inner:tt)*} $(, $($rest:tt)*)?) => {
        $map.insert(($key).into(), $crate::exact_json!({$($inner)*}));
        $crate::exact_json!(@entries $map $($($rest)*)?)
    };
    (@entry $map:ident ($key:expr) $value:expr $(, $($rest:tt)*)?) => {
        $map.insert(($key).into(), $crate::exact_json!($value));
        $crate::exact_json!(@entries $map $($($rest)*)?)
    };

    // A value that cannot be written as JSON is null.
    ($value:expr) => { $crate::json_value::to_value(&$value).unwrap_or_default() };
}
