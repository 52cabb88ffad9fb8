//! A call made ready: the method is found in `.proto` files, in a descriptor set or by asking the server, and its message written in its
//! own format.

mod reflection;
#[cfg(feature = "tls")]
mod secure;
#[cfg(not(feature = "tls"))]
#[path = "secure_left_out.rs"]
mod secure;

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor};

use crate::error::LoadError;
use crate::plan::{Grpc, Plan};
use crate::target::{Address, Target};
use crate::tls::Tls;

/// Makes a call ready to be sent: its path, `/package.Service/Method`, and its body. Asks the server for the descriptor if the plan has none.
pub(crate) fn prepare(
    grpc: &Grpc,
    plan: &Plan,
    target: &Target,
    address: &Address,
    tls: Option<&Tls>,
) -> Result<(String, Vec<u8>), LoadError> {
    let (service, method) = split(&grpc.method)?;
    let pool = if !grpc.protos.is_empty() {
        compile(grpc)?
    } else if let Some(path) = &grpc.descriptors {
        let bytes = std::fs::read(path).map_err(|error| refuse(&format!("{}: {error}", path.display())))?;
        DescriptorPool::decode(&bytes[..]).map_err(|error| refuse(&format!("{}: {error}", path.display())))?
    } else {
        reflection::ask(service, plan.timeout_s, target, address, tls)?
    };
    from_pool(&pool, service, method, &grpc.message)
}

/// [`prepare`] with the descriptors at hand.
fn from_pool(
    pool: &DescriptorPool,
    service: &str,
    method: &str,
    message: &serde_json::Value,
) -> Result<(String, Vec<u8>), LoadError> {
    let found = pool.get_service_by_name(service).ok_or_else(|| {
        refuse(&format!(
            "there is no service {service}; there are: {}",
            names(pool.services(), |s| s.full_name().to_owned())
        ))
    })?;
    let method: MethodDescriptor = found.methods().find(|candidate| candidate.name() == method).ok_or_else(|| {
        refuse(&format!(
            "{service} has no method {method}; it has: {}",
            names(found.methods(), |m| m.name().to_owned())
        ))
    })?;
    if method.is_client_streaming() || method.is_server_streaming() {
        return Err(refuse(&format!("{} is a streaming method; only unary ones can be called", method.full_name())));
    }
    let message = DynamicMessage::deserialize(method.input(), message)
        .map_err(|error| refuse(&format!("the message does not fit {}: {error}", method.input().full_name())))?
        .encode_to_vec();
    Ok((format!("/{service}/{}", method.name()), framed(&message)))
}

/// A message as it is sent: not compressed, its length, itself.
fn framed(message: &[u8]) -> Vec<u8> {
    let mut body = vec![0];
    body.extend_from_slice(&(message.len() as u32).to_be_bytes());
    body.extend_from_slice(message);
    body
}

/// Service and method.
fn split(method: &str) -> Result<(&str, &str), LoadError> {
    let method = method.strip_prefix('/').unwrap_or(method);
    method
        .rsplit_once(['/', '.'])
        .filter(|(service, method)| !service.is_empty() && !method.is_empty())
        .ok_or_else(|| refuse("write the method as package.Service/Method"))
}

/// Compiles the plan's `.proto` files.
fn compile(grpc: &Grpc) -> Result<DescriptorPool, LoadError> {
    let mut includes = grpc.includes.clone();
    if includes.is_empty() {
        // As protoc users expect: imports are found beside the files.
        includes.extend(grpc.protos.iter().filter_map(|path| path.parent().map(std::path::Path::to_path_buf)));
    }
    let set = protox::compile(&grpc.protos, includes).map_err(|error| refuse(&error.to_string()))?;
    DescriptorPool::from_file_descriptor_set(set).map_err(|error| refuse(&error.to_string()))
}

/// Names for a message.
fn names<T>(items: impl Iterator<Item = T>, name: impl Fn(T) -> String) -> String {
    let names: Vec<String> = items.map(name).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// An error.
fn refuse(message: &str) -> LoadError {
    LoadError::Grpc { message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A service with one method of each kind.
    fn pool() -> (tempfile::TempDir, Grpc) {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
        write("types.proto", "syntax = \"proto3\"; package shop; message Item { string id = 1; int32 count = 2; }");
        write(
            "shop.proto",
            "syntax = \"proto3\"; package shop; import \"types.proto\"; service Shop { rpc Buy(Item) returns (Item); \
             rpc Watch(Item) returns (stream Item); }",
        );
        let grpc = Grpc {
            method: "shop.Shop/Buy".to_owned(),
            message: serde_json::json!({"id": "abc", "count": 5}),
            protos: vec![folder.path().join("shop.proto")],
            includes: Vec::new(),
            descriptors: None,
            status: None,
        };
        (folder, grpc)
    }

    #[test]
    fn a_message_is_written_as_protobuf_with_its_length() {
        let (_folder, grpc) = pool();
        let pool = compile(&grpc).expect("compiles");
        let (path, body) = from_pool(&pool, "shop.Shop", "Buy", &grpc.message).expect("fits");
        assert_eq!(path, "/shop.Shop/Buy");
        assert_eq!(body, b"\0\0\0\0\x07\x0a\x03abc\x10\x05");
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_there_is() {
        let (_folder, grpc) = pool();
        let pool = compile(&grpc).expect("compiles");
        let call =
            |service, method, message| from_pool(&pool, service, method, &message).expect_err("refused").to_string();
        assert!(call("shop.Other", "Buy", grpc.message.clone()).contains("shop.Shop"));
        assert!(call("shop.Shop", "Sell", grpc.message.clone()).contains("Buy, Watch"));
        assert!(call("shop.Shop", "Watch", grpc.message.clone()).contains("streaming"));
        assert!(call("shop.Shop", "Buy", serde_json::json!({"colour": 1})).contains("colour"));
        let broken = Grpc { protos: vec!["none.proto".into()], ..grpc };
        assert!(compile(&broken).expect_err("no such file").to_string().contains("none.proto"));
    }

    #[test]
    fn methods_are_written_in_either_way() {
        for text in ["a.b.Service/Method", "/a.b.Service/Method", "a.b.Service.Method"] {
            assert_eq!(split(text).expect("good"), ("a.b.Service", "Method"), "{text}");
        }
        for text in ["", "Method", "/Method", "a.b/"] {
            assert!(split(text).is_err(), "{text}");
        }
    }
}
