//! Texts of elements in responses of object stores, which are small and have no attributes or nested names that matter.

/// The text of the first element of this name.
pub(super) fn text(document: &str, name: &str) -> Option<String> {
    let (_, rest) = document.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    Some(unescaped(text.trim()))
}

fn unescaped(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">");
    let text = text.replace("&quot;", "\"").replace("&apos;", "'");
    let text = text.replace("&#34;", "\"").replace("&#39;", "'");
    text.replace("&amp;", "&")
}

/// A text as the content of an element.
pub(super) fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_and_unescaped() {
        let document = "<?xml version=\"1.0\"?><Error><Code>NoSuchBucket</Code>\
                        <Message>a &amp;lt; &quot;b&quot;</Message><Empty/></Error>";
        for (name, expected) in [
            ("Code", Some("NoSuchBucket")),
            ("Message", Some("a &lt; \"b\"")),
            ("Empty", None),
            ("Other", None),
        ] {
            assert_eq!(text(document, name).as_deref(), expected, "{name}");
        }
        assert_eq!(text("<Code>unclosed", "Code"), None);
        assert_eq!(escaped("a<&>"), "a&lt;&amp;&gt;");
    }
}
