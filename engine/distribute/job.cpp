#include "distribute/job.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/stop.h"
#include "distribute/c10d.h"
#include "distribute/groups.h"
#include "launch/network.h"

namespace trinity {
namespace {

constexpr const char* kHello = "hello";  // the first topic
// for the store to answer, in addition to the timeouts for ranks
constexpr double kStoreExtra_s = 2;
constexpr double kDrain_s = 5;           // for collectives to end before a rank leaves

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

/// This machine's address as seen from machines that reach the store's machine; "-" if there is no
/// route.
std::string own_address(const LaunchVariables& variables) {
  try {
    return address_towards(variables.address, variables.port);
  } catch (const Error&) {
    return "-";
  }
}

/// Message of a rank when it joins.
struct Hello {
  int size = 1, local_rank = -1, local_size = -1;
  std::string node = "-", host, address = "-";

  std::string text() const {
    return fmt::format("{} {} {} {} {} {}", size, local_rank, local_size, node, host, address);
  }
  static Hello parse(const std::string& text) {
    Hello hello;
    std::istringstream in(text);
    in >> hello.size >> hello.local_rank >> hello.local_size >> hello.node >> hello.host >>
        hello.address;
    return hello;
  }
};

/// The first rank whose text differs from the majority's, and that text.
std::optional<std::pair<size_t, std::string>> odd_one(const std::vector<std::string>& texts) {
  std::map<std::string, int> votes;
  for (const auto& vote : texts) ++votes[vote];
  auto most = texts[0];
  for (const auto& vote : texts)
    if (votes[vote] > votes[most]) most = vote;
  for (size_t r = 0; r < texts.size(); ++r)
    if (texts[r] != most) return std::pair(r, most);
  return std::nullopt;
}

/// The first line of `text` that differs in `other`, and the line there.
std::string first_difference(const std::string& text, const std::string& other) {
  std::istringstream a(text), b(other);
  for (std::string line, other_line;;) {
    const bool more = static_cast<bool>(std::getline(a, line));
    const bool other_more = static_cast<bool>(std::getline(b, other_line));
    if (!more && !other_more) return "nothing";
    if (more && other_more && line == other_line) continue;
    return fmt::format("{}, the others {}", more ? line : "nothing",
                       other_more ? other_line : "nothing");
  }
}

}  // namespace

Job::Job(LaunchVariables variables, JobOptions options)
    : variables_(std::move(variables)), options_(options) {}

std::shared_ptr<Job> Job::join(const LaunchVariables& variables, const JobOptions& options) {
  if (options.collectives == Collectives::nccl) require_nccl();
  auto job = std::shared_ptr<Job>(new Job(variables, options));
  if (job->size() > 1) job->meet();
  know_of_copies();
  return job;
}

Job::~Job() {
  try {
    close();
  } catch (const std::exception&) {  // the rest of the job ends with the process
  }
}

std::string Job::key(const std::string& name) const {
  return fmt::format("trinity/{}/{}", variables_.attempt, name);
}

/// Stores of LibTorch 1 and 2 are incompatible, and torchrun uses its own LibTorch's.
std::string Job::store_advice() const {
  if (!variables_.has_store) return "";
  return "; if torchrun's LibTorch differs from this program's (trinity --version), set "
         "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 for it, with --rdzv-backend c10d: rank 0 then keeps "
         "the store";
}

/// Possible cause of a failure to join with ranks on several machines.
std::string Job::address_advice() const {
  if (variables_.local_size == size()) return "";
  const auto advice = loopback_advice(variables_.address);
  return advice.empty() ? "" : "; " + advice;
}

void Job::meet() {
  // An address that was set explicitly is intended, e.g. for emulated nodes on one machine.
  if (variables_.local_size > 0 && !is_loopback(variables_.address) && !address_advice().empty())
    throw Error("the machine of rank 0: " + loopback_advice(variables_.address));
  if (keeps_store()) server_ = JobStore::serve(variables_.address, variables_.port);
  const auto connect = [&] {
    try {
      return JobStore::connect(variables_.address, variables_.port, options_.join_timeout_s);
    } catch (const Error& error) {
      throw Error(error.what() + store_advice() + address_advice());
    }
  };
  {
    StoreWatch watch(options_.join_timeout_s + kStoreExtra_s, [this](double silent_s) {
      std::fprintf(stderr,
                   "trinity: rank %d: the job's store at %s:%d (MASTER_ADDR, MASTER_PORT) has not "
                   "answered for %.0f s: %s was stopped, or another program listens there%s\n",
                   rank(), variables_.address.c_str(), variables_.port, silent_s, keeper().c_str(),
                   store_advice().c_str());
      end_process();
    });
    store_ = connect();
    say_hello(watch);
  }
  MonitorOptions monitor;
  monitor.rank = rank();
  monitor.size = size();
  monitor.node = node_;
  monitor.local_rank = local_rank_;
  monitor.host = host_of_[rank()];
  monitor.keeper = keeper();
  monitor.prefix = key("");
  monitor.timeouts = options_.timeouts;
  monitor_ = std::make_unique<Monitor>(connect(), monitor);
  connect_groups(connect());
}

/// Publishes this rank and reads the others.
void Job::say_hello(StoreWatch& watch) {
  joining_ = &watch;
  take_rank();
  Hello hello;
  hello.size = size();
  hello.local_rank = variables_.local_rank;
  hello.local_size = variables_.local_size;
  hello.host = host_name();
  hello.address = own_address(variables_);
  // Containers on two machines may have the same name.
  hello.node = variables_.node.empty() ? hello.host + "/" + hello.address : variables_.node;
  find_nodes(gather(kHello, hello.text()));
  compare_identities();
  if (rank() == 0) store_->set(key("complete"), "1");
  joining_ = nullptr;
}

/// A started job is complete: a later rank is one too many.
void Job::take_rank() {
  try {
    if (store_->add(key(fmt::format("taken/{}", rank())), 1) == 1) return;
  } catch (const StoreError& error) {
    throw Error(error.what() + store_advice());
  }
  if (store_->get(key("complete")))
    throw Error("rank {} is taken: the job at {}:{} runs already", rank(), variables_.address, variables_.port);
  const auto message = fmt::format("two processes have rank {}", rank());
  store_->set(key("verdict"), message);
  fail_joining(message);
}

/// Ranks with another program, script or command line would compute something else.
void Job::compare_identities() {
  constexpr const char* kParts[] = {"another program", "another script", "other arguments"};
  const auto& own = options_.identity;
  const auto texts =
      gather("identity", fmt::format("{}\n{}\n{}", own.program, own.script, own.arguments));
  std::vector<std::istringstream> rest(texts.begin(), texts.end());
  for (const char* part : kParts) {
    std::vector<std::string> lines(texts.size());
    for (size_t r = 0; r < lines.size(); ++r) std::getline(rest[r], lines[r]);
    const auto odd = odd_one(lines);
    if (!odd) continue;
    const auto& [rank, most] = *odd;
    fail_joining(fmt::format("{} has {}: {}, the others {}", name_rank(seen_ranks(), rank), part,
                             lines[rank].empty() ? "none" : lines[rank],
                             most.empty() ? "none" : most));
  }
}

/// Ranks as far as their hellos are known, for messages.
std::vector<Seen> Job::seen_ranks() const {
  std::vector<Seen> ranks(node_of_.size());
  for (size_t r = 0; r < ranks.size(); ++r) {
    ranks[r].heartbeat.beat = 1;
    ranks[r].heartbeat.node = node_of_[r];
    ranks[r].heartbeat.host = host_of_[r];
  }
  return ranks;
}

/// Every rank prints it. The store's host stays until the others have read it.
void Job::fail_joining(const std::string& message) {
  if (store_->add(key("speakers"), 1) == 1) store_->set(key("verdict"), message);
  if (keeps_store()) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  throw Error(message);
}

void Job::end_without_store(const std::string& failure) const {
  if (monitor_) monitor_->end_without_store();
  throw Error("{}, which keeps the job's store, is gone: {}", keeper(), failure);
}

void Job::connect_groups(std::unique_ptr<JobStore> store) {
  groups_ = std::make_unique<Groups>();
  for (const Scope scope : {Scope::world, Scope::node, Scope::across}) {
    std::vector<int> ranks;
    for (int r = 0; r < size(); ++r) {
      const auto at = static_cast<size_t>(r);
      const bool is_member =
          scope == Scope::world ||
          (scope == Scope::node ? node_of_[at] == node_ : local_rank_of_[at] == local_rank_);
      if (is_member) ranks.push_back(r);
    }
    GroupOptions group;
    group.name = key(fmt::format("group/{}/{}/", scope_name(scope), ranks[0]));
    group.rank = static_cast<int>(std::find(ranks.begin(), ranks.end(), rank()) - ranks.begin());
    group.size = static_cast<int>(ranks.size());
    group.address = on_one_host_ ? "127.0.0.1" : own_address(variables_);
    group.gpu = gpu();
    if (nodes_ > 1 && scope != Scope::node) group.link = options_.link;
    groups_->scopes[static_cast<size_t>(scope)] = std::make_unique<Group>(*store, group);
  }
  const auto& link = options_.link;
  if (nodes_ > 1 && (link.latency_s > 0 || link.bandwidth_bytes_per_s > 0))
    groups_->link = std::make_unique<SlowLink>(link);
  groups_->store = std::move(store);
  barrier();
}

/// Numbers nodes by their first ranks, and ranks inside nodes.
void Job::find_nodes(const std::vector<std::string>& hellos) {
  std::map<std::string, int> known;
  std::vector<int> members;
  std::vector<Hello> all;
  for (const auto& text : hellos) all.push_back(Hello::parse(text));
  for (size_t r = 0; r < all.size(); ++r) {
    const auto [entry, is_new] = known.emplace(all[r].node, static_cast<int>(known.size()));
    if (is_new) members.push_back(0);
    node_of_.push_back(entry->second);
    host_of_.push_back(all[r].host);
    auto& count = members[entry->second];
    if (all[r].local_rank >= 0 && all[r].local_rank != count)
      fail_joining(
          fmt::format("rank {} has local rank {}, expected {}: local ranks of a node are numbered "
                      "0, 1, 2, ...", r,
                      all[r].local_rank, count));
    local_rank_of_.push_back(count++);
    on_one_host_ = on_one_host_ && all[r].address == all[0].address;
    if (is_loopback(all[r].address) != is_loopback(all[0].address))
      fail_joining(fmt::format(
          "rank {} on host {} sees the job's store at {}, rank 0 on host {} at {}: expected a name "
          "{} that resolves to one address on all machines; set MASTER_ADDR to an address that all "
          "reach",
          r, all[r].host, all[r].address, all[0].host, all[0].address, variables_.address));
  }
  for (size_t r = 0; r < all.size(); ++r) {
    const int count = members[node_of_[r]];
    if (count != members[0])
      fail_joining(
          fmt::format("the node of rank {} has {} ranks, the node of rank 0 has {}: all nodes need "
                      "the same number",
                      r, count, members[0]));
    if (all[r].local_size >= 0 && all[r].local_size != count)
      fail_joining(
          fmt::format("rank {} states {} ranks per node, there are {}", r, all[r].local_size,
                      count));
  }
  nodes_ = static_cast<int>(members.size());
  node_ = node_of_[rank()];
  local_rank_ = local_rank_of_[rank()];
}

/// The texts of all ranks about a topic; its name must be new.
std::vector<std::string> Job::gather(const std::string& topic, const std::string& text) {
  const int64_t number = ++meetings_;
  if (monitor_) {
    monitor_->note_begun(Scope::meeting, number);
    monitor_->note_wait(topic, Scope::meeting, number);
  }
  std::vector<std::string> texts;
  try {
    store_->set(key(fmt::format("{}/{}", topic, rank())), text);
    for (int r = 0; r < size(); ++r) texts.push_back(await(topic, r));
  } catch (const StoreError& error) {
    end_without_store(error.what());
  }
  if (monitor_) monitor_->note_done();
  return texts;
}

/// The text of rank `r` about a topic.
std::string Job::await(const std::string& topic, int r) {
  const double began_s = steady_s();
  std::optional<std::string> found;
  while (!(found = store_->get(key(fmt::format("{}/{}", topic, r))))) {
    poll_stop();
    if (joining_) {
      joining_->answered();
      check_joining(r, steady_s() - began_s);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (topic == kHello && Hello::parse(*found).size != size())
    fail_joining(fmt::format("rank {} says the job has {} ranks, rank {} says {}", r,
                             Hello::parse(*found).size, rank(), size()));
  return *found;
}

void Job::check_joining(int missing, double waited_s) {
  if (const auto verdict = store_->get(key("verdict"))) fail_joining(*verdict);
  if (waited_s <= options_.join_timeout_s) return;
  const int local_size = variables_.local_size;
  const bool several_nodes = local_size > 0 && local_size < size();
  fail_joining(fmt::format(
      "rank {} of {}{} has not joined within {:g} s: it never started, hangs, was stopped or ended",
      missing, size(), several_nodes ? fmt::format(" (node {})", missing / local_size) : "",
      options_.join_timeout_s));
}

int Job::members(Scope scope) const {
  return scope == Scope::node ? local_size() : scope == Scope::across ? nodes_ : size();
}

std::shared_ptr<Work> Job::begin(const std::string& what, Scope scope,
                                 std::function<void(Group&)> body) {
  if (closed_) throw ArgumentError("the job is closed");
  if (members(scope) == 1) {
    auto work = std::make_shared<Work>(what, scope, 0);
    work->finish("");
    return work;
  }
  auto& group = *groups_->scopes[static_cast<size_t>(scope)];
  auto work = std::make_shared<Work>(what, scope, ++group.begun);
  monitor_->note_begun(scope, work->number());
  group.stream.begin(work, [&group, body = std::move(body)] { body(group); });
  return work;
}

std::shared_ptr<Work> Job::begin_all_reduce(const at::Tensor& tensor, const AllReduce& options) {
  return begin("all_reduce", options.scope,
               [tensor, options](Group& group) { group.all_reduce(tensor, options); });
}

std::shared_ptr<Work> Job::begin_broadcast(const at::Tensor& tensor, Scope scope, int root) {
  return begin("broadcast", scope, [tensor, root](Group& group) { group.broadcast(tensor, root); });
}

void Job::sum(std::span<float> values) {
  wait(*begin_all_reduce(
      at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kFloat), {}));
}

void Job::sum(std::span<double> values) {
  wait(*begin_all_reduce(
      at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kDouble), {}));
}

void Job::wait(const Work& work) {
  if (work.is_done() && work.failure().empty()) return;
  monitor_->note_wait(work.what(), work.scope(), work.number());
  while (!work.wait_for(0.05)) {
    if (stop_flag().load()) {
      monitor_->note_done();
      throw Interrupted();
    }
  }
  const auto failure = work.failure();
  if (!failure.empty())
    end_broken(fmt::format("{} {} ({})", work.what(), work.number(), scope_name(work.scope())),
               failure);
  monitor_->note_done();
}

void Job::end_broken(const std::string& what, const std::string& failure) {
  monitor_->note_broken(failure);
  const double until_s = steady_s() + options_.timeouts.silent_s + 5;
  while (steady_s() < until_s) {
    poll_stop();  // after Ctrl-C ranks do not end at the same moment
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  fail(fmt::format("rank {} lost a connection in {}: {}", rank(), what, failure));
}

std::shared_ptr<Message> Job::send(const at::Tensor& tensor, int to, int32_t tag) {
  if (closed_ || size() == 1) throw ArgumentError("the job is closed");
  auto& world = *groups_->scopes[static_cast<size_t>(Scope::world)];
  if (!groups_->link || node_of_[static_cast<size_t>(to)] == node_) return world.send(tensor, to, tag);
  return groups_->link->send(static_cast<double>(tensor.nbytes()),
                             [&world, tensor, to, tag] { return world.send(tensor, to, tag); });
}

std::shared_ptr<Message> Job::receive(const at::Tensor& tensor, int from, int32_t tag) {
  if (closed_ || size() == 1) throw ArgumentError("the job is closed");
  return groups_->scopes[static_cast<size_t>(Scope::world)]->receive(tensor, from, tag);
}

void Job::barrier() {
  if (size() == 1) return;
  wait(*begin("barrier", Scope::world, [](Group& group) { group.barrier(); }));
}

void Job::agree(const std::string& place, const std::string& what, const std::string& text) {
  if (size() == 1) return;
  if (closed_) throw ArgumentError("the job is closed");
  const auto texts = gather(fmt::format("agree {}", ++agreements_), text);
  if (const auto odd = odd_one(texts))
    fail(fmt::format("{}{} disagrees about {}: it has {}", place,
                     name_rank(seen_ranks(), odd->first), what,
                     first_difference(texts[odd->first], odd->second)));
}

void Job::fail(const std::string& message) {
  if (!monitor_) throw Error(message);
  monitor_->end_job(message);
}

void Job::close() {
  if (closed_) return;
  closed_ = true;
  if (!monitor_) return;
  if (groups_ && !groups_->drain(kDrain_s))
    static_cast<void>(groups_.release());  // their threads wait for ranks that are gone
  monitor_->leave();
  if (keeps_store()) {
    Observer observer(*store_, key(""), size());
    const double until_s = steady_s() + options_.timeouts.silent_s + options_.timeouts.waiting_s;
    while (steady_s() < until_s && !observer.all_have_left()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (stop_flag().load() || observer.look(options_.timeouts)) break;
    }
  }
  groups_.reset();
}

}  // namespace trinity
