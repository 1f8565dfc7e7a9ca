//! Hashes and HMAC, for `node:crypto` and `crypto.subtle`; the classes are in guest/hashes.js and
//! guest/node/crypto.js. Bytes travel as hexadecimal text, see encoding.rs.
//!
//! RustCrypto's crates do the work: they need no unsafe code of ours, and are several times faster
//! than the same loops in the engine. Nothing here is meant to keep a secret from the guest.

use belljar_contract::hex;
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use rquickjs::{Ctx, Exception, Object, Result, String as JsString, function::Func};
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::encoding::bytes_of;

/// Adds `digest(name, hex)` and `authenticate(name, key, hex)` to `native`.
pub(super) fn install(native: &Object<'_>) -> Result<()> {
    native.set("digest", Func::from(digest))?;
    native.set("authenticate", Func::from(authenticate))
}

fn digest<'js>(ctx: Ctx<'js>, name: String, hex: JsString<'js>) -> Result<String> {
    let data = bytes(&ctx, &hex)?;
    let hash = match name.as_str() {
        "md5" => hash::<Md5>(&data),
        "sha1" => hash::<Sha1>(&data),
        "sha224" => hash::<Sha224>(&data),
        "sha256" => hash::<Sha256>(&data),
        "sha384" => hash::<Sha384>(&data),
        "sha512" => hash::<Sha512>(&data),
        _ => return Err(unknown(&ctx, &name)),
    };
    Ok(hash)
}

fn authenticate<'js>(
    ctx: Ctx<'js>,
    name: String,
    key: JsString<'js>,
    hex: JsString<'js>,
) -> Result<String> {
    let (key, data) = (bytes(&ctx, &key)?, bytes(&ctx, &hex)?);
    let code = match name.as_str() {
        "md5" => code::<Hmac<Md5>>(&key, &data),
        "sha1" => code::<Hmac<Sha1>>(&key, &data),
        "sha224" => code::<Hmac<Sha224>>(&key, &data),
        "sha256" => code::<Hmac<Sha256>>(&key, &data),
        "sha384" => code::<Hmac<Sha384>>(&key, &data),
        "sha512" => code::<Hmac<Sha512>>(&key, &data),
        _ => return Err(unknown(&ctx, &name)),
    };
    code.ok_or_else(|| Exception::throw_type(&ctx, "the key of the HMAC is not usable"))
}

fn hash<D: Digest>(data: &[u8]) -> String {
    hex::encode(&D::digest(data))
}

fn code<M: Mac + KeyInit>(key: &[u8], data: &[u8]) -> Option<String> {
    let mut mac = <M as KeyInit>::new_from_slice(key).ok()?;
    mac.update(data);
    Some(hex::encode(&mac.finalize().into_bytes()))
}

fn bytes(ctx: &Ctx<'_>, digits: &JsString<'_>) -> Result<Vec<u8>> {
    let out_of_memory = || Exception::throw_internal(ctx, "out of memory");
    let digits = digits.clone().to_cstring().map_err(|_| out_of_memory())?;
    bytes_of(&digits).ok_or_else(out_of_memory)
}

fn unknown(ctx: &Ctx<'_>, name: &str) -> rquickjs::Error {
    Exception::throw_type(ctx, &format!("there is no hash named {name}"))
}
