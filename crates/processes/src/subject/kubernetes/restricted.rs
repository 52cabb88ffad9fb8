//! What Pod Security "restricted" wants of unladen's own pods that need no right on their node.

use serde_json::{Value, json};

/// The user that is nobody.
pub(super) const NOBODY: u32 = 65534;

/// `securityContext` of such a pod.
pub(super) fn pod() -> Value {
    json!({"runAsNonRoot": true, "runAsUser": NOBODY, "seccompProfile": {"type": "RuntimeDefault"}})
}

/// `securityContext` of its containers.
pub(super) fn container() -> Value {
    json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}})
}
