//! Calls about items of which the service may refuse some.

use super::Call;
use crate::aws::{Element, Error};

// === impl Call ===

impl Call {
    /// Why the service refuses this call about one item, if it does: the response is a success all the same.
    pub fn refused(&self, id: &str, response: &Element) -> Option<Error> {
        let problem = response.at("unsuccessful/item/error")?;
        Some(Error::Refused {
            what: format!("{} for {id}", self.action),
            status: 400,
            code: problem.text_at("code").to_owned(),
            message: problem.text_at("message").to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_items_are_read() {
        let call = Call::new("DeleteVpcEndpoints").list("VpcEndpointId", ["vpce-1"]);
        let item = "<item><resourceId>vpce-1</resourceId><error><code>Busy</code><message>no</message></error></item>";
        for (items, expected) in [("", None), (item, Some(("Busy", "no")))] {
            let response = format!("<Response><unsuccessful>{items}</unsuccessful></Response>");
            let refused = call.refused("vpce-1", &Element::parse(&response).unwrap());
            let found = match &refused {
                Some(Error::Refused {
                    what,
                    code,
                    message,
                    ..
                }) => {
                    assert_eq!(what, "DeleteVpcEndpoints for vpce-1");
                    Some((code.as_str(), message.as_str()))
                }
                _ => None,
            };
            assert_eq!(found, expected, "{items}");
        }
    }
}
