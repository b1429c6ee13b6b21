#pragma once

#include <string>
#include <vector>

// The network of a machine as far as jobs need it: addresses, who they reach, whether one
// can be listened at. Addresses are IPv4 or IPv6 in their usual text.

namespace trinity {

struct Interface {
  std::string name, address;
  bool is_loopback = false;
};

/// Those that are up, with an entry for every address, in the system's order.
std::vector<Interface> interfaces();

/// The addresses of a host name, those that the system prefers first. Throws Error saying why there
/// are none.
std::vector<std::string> addresses_of(const std::string& host);

/// True if an address is one that reaches this machine alone.
bool is_loopback(const std::string& address);

/// The address of this machine from which packets to a host leave; no packet is sent. Throws Error
/// where the host is unknown or no route leads there.
std::string address_towards(const std::string& host, int port);

/// Why nothing can listen at host:port of this machine; empty where something can.
std::string listening_failure(const std::string& host, int port);

/// A sentence about a host of a job that resolves to this machine alone, empty for others:
/// "'a' resolves to 127.0.1.1, ...".
std::string loopback_advice(const std::string& host);

}  // namespace trinity
