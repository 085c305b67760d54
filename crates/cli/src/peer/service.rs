//! The service of each pair of commands in the handshake, and the messages for two commands that do not belong
//! together.

use proto::service::Service;

/// One end's command, as it is known to the other end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandPair {
    /// The service that both name in the handshake.
    pub(crate) service: Service,
    /// The command that listens.
    pub(crate) listener: &'static str,
    /// The command that calls.
    pub(crate) client: &'static str,
}

pub(crate) const PERF: CommandPair =
    CommandPair { service: Service::named("perf"), listener: "narrows perf --listen", client: "narrows perf" };
pub(crate) const FILES: CommandPair =
    CommandPair { service: Service::named("files"), listener: "narrows recv", client: "narrows send" };
pub(crate) const PROXY: CommandPair =
    CommandPair { service: Service::named("proxy"), listener: "narrows proxy server", client: "narrows proxy client" };

/// The commands of a service.
fn pair_of(service: Service) -> Option<CommandPair> {
    [PERF, FILES, PROXY].into_iter().find(|pair| pair.service == service)
}

/// A service that is none of these commands'.
fn named(service: Option<Service>) -> String {
    service.map_or_else(|| "another service".to_owned(), |service| service.to_string())
}

impl CommandPair {
    /// Returns the message to this command's client about a listener that offers another service.
    pub(crate) fn wrong_service(self, here: Option<Service>) -> String {
        if let Some(other) = here.and_then(pair_of) {
            return format!("is `{}`, not `{}`: call it with `{}`", other.listener, self.listener, other.client);
        }
        format!("offers {}, not `{}`: another program has that address", named(here), self.listener)
    }

    /// Returns the reason why this command's listener refuses a client that requests another service.
    pub(crate) fn wrong_request(self, requested: Option<Service>) -> String {
        let requested = match requested.and_then(pair_of) {
            Some(other) => format!("it is `{}` and asks for `{}`", other.client, other.listener),
            None => format!("it asks for {}", named(requested)),
        };
        format!("{requested}, and this is `{}`", self.listener)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_both_commands() {
        let text = FILES.wrong_service(Some(PERF.service));
        assert_eq!(text, "is `narrows perf --listen`, not `narrows recv`: call it with `narrows perf`");
        let other = Service::named("backup");
        assert_eq!(
            FILES.wrong_service(Some(other)),
            "offers narrows-1/backup, not `narrows recv`: another program has that address"
        );
        assert_eq!(
            FILES.wrong_service(None),
            "offers another service, not `narrows recv`: another program has that address"
        );
        let text = PROXY.wrong_request(Some(FILES.service));
        assert_eq!(text, "it is `narrows send` and asks for `narrows recv`, and this is `narrows proxy server`");
        assert_eq!(
            PROXY.wrong_request(Some(other)),
            "it asks for narrows-1/backup, and this is `narrows proxy server`"
        );
        assert_eq!(PROXY.wrong_request(None), "it asks for another service, and this is `narrows proxy server`");
    }
}
