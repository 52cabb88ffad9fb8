//! What both ends of HTTP/2 need byte by byte: heads of frames (RFC 9113) and header compression (RFC 7541). Pure: no
//! sockets, no clock, no connection. The load generator speaks it as a client, the span sink as a server.

pub mod frame;
pub mod hpack;
mod huffman;
