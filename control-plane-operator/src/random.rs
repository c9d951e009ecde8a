//! Random texts: passwords and keys.

/// Fills a buffer with random bytes; false if there are none.
pub(crate) fn fill(bytes: &mut [u8]) -> bool {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.secure_random.fill(bytes).is_ok()
}

/// Generates a text of some of these characters. Random bytes that would bias the distribution are discarded. `None` if
/// there are no random bytes.
pub(crate) fn text(
    alphabet: &[u8],
    length: usize,
    random: &mut impl FnMut(&mut [u8]) -> bool,
) -> Option<String> {
    let fair = u8::MAX - u8::MAX % u8::try_from(alphabet.len()).ok()?.max(1);
    let mut text = String::with_capacity(length);
    while text.len() < length {
        let mut bytes = [0; 32];
        if !random(&mut bytes) {
            return None;
        }
        let kept = bytes.into_iter().filter(|byte| *byte < fair);
        let characters = kept.map(|byte| char::from(alphabet[usize::from(byte) % alphabet.len()]));
        text.extend(characters.take(length - text.len()));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_the_requested_length() {
        for length in [1, 31, 32, 33, 64] {
            let text = text(b"ab", length, &mut fill).unwrap();
            assert_eq!(text.len(), length, "{text}");
            assert!(text.chars().all(|it| "ab".contains(it)), "{text}");
        }
    }

    #[test]
    fn texts_require_random_bytes() {
        assert_eq!(text(b"ab", 1, &mut |_| false), None);
    }
}
