// Package proxy is a TCP proxy before a Redis, one for each link of a test, that goes wrong on purpose. It reads the protocol, so that a
// fault may befall single commands, and so that a reply can be lost although the request was carried out, which a pause of the server
// cannot show.
//
//	mode          without Commands: the whole link          with Commands: those that fit
//	Pass          nothing happens                           nothing happens
//	Cut           connections break, new ones too           carried out, then the connection breaks before the reply
//	Refuse        connections break, no new ones            (not available)
//	BlackHole     connections stay, nothing gets through    not carried out; the connection stays and is dead
//	Delay         replies come that much later              the same
//	SwallowReply  carried out, no replies                   carried out, no reply; later replies take its place
//	HoldReply     carried out, replies come at Heal or Set  the same, and what follows on the connection waits too
//	StaleReply    (not available)                           carried out; the reply before it is sent again instead
//
// A connection that does not begin with a Redis command, such as one with TLS, and one that has subscribed, is passed on unread: only the
// faults of the whole link befall it.
package proxy
