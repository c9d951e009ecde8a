//! Texts of elements in responses of clouds, which are small. Attributes are ignored.

/// The text of the first element of this name.
pub fn text(document: &str, name: &str) -> Option<String> {
    let (_, rest) = document.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    Some(unescaped(text.trim()))
}

/// The elements that have no other elements, in order: the names from the root, joined by slashes, and the text.
pub fn leaves(document: &str) -> Vec<(String, String)> {
    let mut open: Vec<&str> = Vec::new();
    let mut leaves: Vec<(String, String)> = Vec::new();
    let mut is_leaf = false;
    // What is before the first tag is no element.
    for piece in document.split('<').skip(1) {
        let Some((tag, text)) = piece.split_once('>') else {
            break;
        };
        if tag.starts_with(['?', '!']) {
            continue;
        }
        if tag.starts_with('/') {
            if let Some((path, _)) = leaves.last_mut().filter(|_| is_leaf) {
                *path = open.join("/");
            }
            is_leaf = false;
            open.pop();
            continue;
        }
        if is_leaf {
            // The element around this one turns out to have elements.
            leaves.pop();
        }
        is_leaf = !tag.ends_with('/');
        if is_leaf {
            open.push(tag.split_whitespace().next().unwrap_or_default());
            leaves.push((String::new(), unescaped(text.trim())));
        }
    }
    // The last one may not be closed.
    leaves.retain(|(path, _)| !path.is_empty());
    leaves
}

/// A text of an element, with its entities resolved.
pub fn unescaped(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">");
    let text = text.replace("&quot;", "\"").replace("&apos;", "'");
    let text = text.replace("&#34;", "\"").replace("&#39;", "'");
    text.replace("&amp;", "&")
}

/// A text as the content of an element.
pub fn escaped(text: &str) -> String {
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

    #[test]
    fn leaves_have_their_paths() {
        let document = "<?xml version=\"1.0\"?>\n<a xmlns=\"urn:x\">\n <b>1</b><b/> <c><b>x &lt; y</b></c>\n <d></d>\n</a>\n";
        let leaf = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        assert_eq!(
            leaves(document),
            [leaf("a/b", "1"), leaf("a/c/b", "x < y"), leaf("a/d", "")]
        );
        for damaged in ["", "text", "<a", "<a>1", "</a>", "</a><a/>"] {
            assert_eq!(leaves(damaged), [], "{damaged}");
        }
    }
}
