//! The Huffman code of HPACK (RFC 7541, 5.2 and Appendix B), decoding only: requests are sent as they are, because their blocks
//! are cached and mostly indexed.
//!
//! The code is canonical: the lengths alone determine it, and a test with the vectors of Appendix C holds them to it.

/// Lengths of the codes in bits, of the symbols 0 to 255 and the end of the string.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12,
    10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6,
    5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22,
    22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20,
    22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28,
    27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28,
    27, 27, 27, 27, 27, 26, 30,
];
/// The longest code.
const LONGEST: usize = 30;
/// The symbol that ends a string; it must not occur in one.
const END: usize = 256;

/// What decoding needs, by length: the first code that is longer (aligned to 30 bits), the first code of the length, and where
/// its symbols stand in `symbols`.
struct Code {
    limit: [u32; LONGEST + 1],
    first: [u32; LONGEST + 1],
    offset: [u16; LONGEST + 1],
    symbols: [u16; 257],
}

/// The code, derived from the lengths.
static CODE: Code = {
    let mut code =
        Code { limit: [0; LONGEST + 1], first: [0; LONGEST + 1], offset: [0; LONGEST + 1], symbols: [0; 257] };
    let (mut next, mut placed, mut length) = (0u32, 0usize, 1);
    while length <= LONGEST {
        next <<= 1;
        code.first[length] = next;
        code.offset[length] = placed as u16;
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == length {
                code.symbols[placed] = symbol as u16;
                placed += 1;
                next += 1;
            }
            symbol += 1;
        }
        code.limit[length] = next << (LONGEST - length);
        length += 1;
    }
    code
};

/// Appends the decoded string. `None` if it is not a string of this code (RFC 7541, 5.2: a wrong end, or the symbol for the end).
pub(crate) fn decode(input: &[u8], into: &mut Vec<u8>) -> Option<()> {
    let (mut held, mut bits, mut input) = (0u64, 0usize, input.iter());
    loop {
        while bits <= 56 {
            let Some(&byte) = input.next() else { break };
            held = held << 8 | u64::from(byte);
            bits += 8;
        }
        if bits < 5 {
            break;
        }
        // The next 30 bits, filled up with ones as padding is.
        let window = if bits >= LONGEST {
            (held >> (bits - LONGEST)) as u32
        } else {
            let missing = LONGEST - bits;
            ((held << missing) as u32) | ((1u32 << missing) - 1)
        } & ((1 << LONGEST) - 1);
        let length = (5..=LONGEST).find(|&length| window < CODE.limit[length])?;
        if length > bits {
            break;
        }
        let place = usize::from(CODE.offset[length]) + ((window >> (LONGEST - length)) - CODE.first[length]) as usize;
        let symbol = usize::from(CODE.symbols[place]);
        if symbol == END {
            return None;
        }
        into.push(symbol as u8);
        bits -= length;
        held &= (1 << bits) - 1;
    }
    // What is left is padding: fewer than 8 bits, all ones.
    (bits < 8 && held == (1 << bits) - 1).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes from hex digits.
    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("ascii"), 16).expect("hex"))
            .collect()
    }

    fn decoded(input: &[u8]) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        decode(input, &mut text).map(|()| text)
    }

    #[test]
    fn the_strings_of_appendix_c() {
        for (hex, text) in [
            ("f1e3 c2e5 f23a 6ba0 ab90 f4ff", "www.example.com"),
            ("a8eb 1064 9cbf", "no-cache"),
            ("25a8 49e9 5ba9 7d7f", "custom-key"),
            ("25a8 49e9 5bb8 e8b4 bf", "custom-value"),
            ("d07a be94 1054 d444 a820 0595 040b 8166 e082 a62d 1bff", "Mon, 21 Oct 2013 20:13:21 GMT"),
            ("9d29 ad17 1863 c78f 0b97 c8e9 ae82 ae43 d3", "https://www.example.com"),
            ("640e ff", "307"),
            ("9bd9 ab", "gzip"),
            (
                "94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
                "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
            ),
        ] {
            assert_eq!(decoded(&bytes(hex)).expect(text), text.as_bytes());
        }
    }

    #[test]
    fn every_symbol_alone_comes_back() {
        for symbol in 0..=255u8 {
            let length = usize::from(LENGTHS[usize::from(symbol)]);
            let place =
                CODE.symbols.iter().position(|&other| other == u16::from(symbol)).expect("every symbol has a place");
            let code = u64::from(CODE.first[length]) + (place - usize::from(CODE.offset[length])) as u64;
            let whole = length.next_multiple_of(8);
            let padded = (code << (whole - length)) | ((1 << (whole - length)) - 1);
            assert_eq!(decoded(&padded.to_be_bytes()[8 - whole / 8..]), Some(vec![symbol]), "symbol {symbol}");
        }
    }

    #[test]
    fn wrong_ends_are_refused() {
        assert_eq!(decoded(&[]), Some(Vec::new()));
        // Padding of 8 ones and more, padding with a zero, the symbol for the end.
        for hex in ["ff", "a8eb 1064 9cbf ff", "1e", "ffff ffff", "ffff fffc"] {
            assert_eq!(decoded(&bytes(hex)), None, "{hex}");
        }
    }
}
