#include "launch/network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace trinity {
namespace {

std::string text_of(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET)
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
  else if (address->sa_family == AF_INET6)
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text,
              sizeof text);
  return text;
}

using Found = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Found resolve(const std::string& host, int port, int kind) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = kind;
  addrinfo* list = nullptr;
  const int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (code != 0)
    throw Error("host '{}' is unknown: {}", host, code == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(code));
  return {list, freeaddrinfo};
}

class Socket {
 public:
  Socket(const addrinfo& about, int flags)
      : file_(socket(about.ai_family, about.ai_socktype | SOCK_CLOEXEC | flags,
                     about.ai_protocol)) {}
  ~Socket() {
    if (file_ >= 0) close(file_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int file() const { return file_; }

 private:
  int file_;
};

}  // namespace

std::vector<Interface> interfaces() {
  ifaddrs* list = nullptr;
  std::vector<Interface> found;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || !(entry->ifa_flags & IFF_UP)) continue;
    const auto address = text_of(entry->ifa_addr);
    if (!address.empty())
      found.push_back({entry->ifa_name, address, (entry->ifa_flags & IFF_LOOPBACK) != 0});
  }
  freeifaddrs(list);
  return found;
}

std::vector<std::string> addresses_of(const std::string& host) {
  const auto list = resolve(host, 0, SOCK_STREAM);
  std::vector<std::string> found;
  for (const addrinfo* entry = list.get(); entry; entry = entry->ai_next) {
    const auto address = text_of(entry->ai_addr);
    if (std::find(found.begin(), found.end(), address) == found.end()) found.push_back(address);
  }
  return found;
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

std::string address_towards(const std::string& host, int port) {
  const auto list = resolve(host, port, SOCK_DGRAM);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* entry = list.get(); entry; entry = entry->ai_next) {
    const Socket socket(*entry, 0);
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    if (socket.file() >= 0 && connect(socket.file(), entry->ai_addr, entry->ai_addrlen) == 0 &&
        getsockname(socket.file(), reinterpret_cast<sockaddr*>(&own), &size) == 0)
      return text_of(reinterpret_cast<const sockaddr*>(&own));
    error = errno;
  }
  throw Error("this machine has no route to '{}': {}", host, std::strerror(error));
}

std::string listening_failure(const std::string& host, int port) {
  try {
    const auto list = resolve(host, port, SOCK_STREAM);
    const Socket socket(*list, 0);
    const int yes = 1;
    if (socket.file() >= 0)
      setsockopt(socket.file(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (socket.file() >= 0 && bind(socket.file(), list->ai_addr, list->ai_addrlen) == 0 &&
        listen(socket.file(), 1) == 0)
      return "";
    if (errno == EADDRNOTAVAIL)
      return fmt::format("{} is not an address of this machine", text_of(list->ai_addr));
    return std::strerror(errno);
  } catch (const Error& error) {
    return error.what();
  }
}

std::string loopback_advice(const std::string& host) {
  try {
    const auto found = addresses_of(host);
    if (!std::all_of(found.begin(), found.end(), is_loopback)) return "";
    return fmt::format(
        "'{}' resolves to {}, which reaches this machine alone: set MASTER_ADDR to an address of "
        "rank 0's machine that the others reach, or give it one in /etc/hosts or DNS",
        host, found[0]);
  } catch (const Error&) {
    return "";
  }
}

}  // namespace trinity
