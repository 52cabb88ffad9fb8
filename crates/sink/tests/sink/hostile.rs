//! What a broken or hostile sender may send, each protocol: every case gets the protocol's own clear error and a counter in
//! the summary, the sink stays alive and takes sound spans afterwards, and its memory stays bounded.
