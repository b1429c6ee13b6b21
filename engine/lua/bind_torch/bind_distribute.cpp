#include <algorithm>

#include "base/confine.h"
#include "base/hash.h"
#include "lua/bind/module.h"
#include "lua/bind_torch/job.h"
#include "lua/bind_torch/open.h"
#include "lua/bind_torch/tensor.h"

// The processes of one training (distribute/job.h), for lib/trinity/dist/init.lua.

namespace trinity::lua {
namespace {

/// Untrusted scripts must not use other processes.
void refuse_safe_scripts() {
  if (is_confined()) throw ArgumentError("safe scripts start no processes and join no job");
}

double seconds(Fields& fields, const char* key, double fallback) {
  const double value = fields.number(key, fallback);
  if (!(value > 0 && value < 1e6))
    throw ArgumentError("{}: field '{}': expected seconds above 0, got {:g}", fields.owner(), key, value);
  return value;
}

InjectedLink read_link(lua_State* L, Fields& fields) {
  InjectedLink link;
  if (!fields.push_table("link")) return link;
  Fields given(L, -1, fields.owner() + ": link");
  link.latency_s = given.number("latency_s", 0);
  link.bandwidth_bytes_per_s = given.number("bandwidth_bytes_per_s", 0);
  given.refuse_unknown();
  if (!(link.latency_s >= 0 && link.latency_s < 1e3) ||
      !(link.bandwidth_bytes_per_s >= 0 && link.bandwidth_bytes_per_s < 1e18))
    throw ArgumentError(given.owner() +
                        ": expected latency_s from 0 to 1000, bandwidth_bytes_per_s from 0");
  lua_pop(L, 1);
  return link;
}

/// A line of text with any content.
std::string line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// identity={program=, script=, script_text=, arguments=}; of a script's text the hash is compared.
Identity read_identity(lua_State* L, Fields& fields) {
  Identity identity;
  if (!fields.push_table("identity")) return identity;
  Fields given(L, -1, fields.owner() + ": identity");
  identity.program = line(given.string("program", ""));
  identity.script = line(given.string("script", ""));
  const auto text = given.string("script_text", "");
  if (!text.empty()) identity.script += fmt::format(" [{:016x}]", Hasher().add(text).value());
  identity.arguments = line(given.string("arguments", ""));
  given.refuse_unknown();
  lua_pop(L, 1);
  return identity;
}

/// join{timeout_s=, silence_s=, join_timeout_s=, backend=, link={latency_s=,
/// bandwidth_bytes_per_s=}, identity={...}} -> job
auto dist_join(lua_State* L) {
  refuse_safe_scripts();
  Fields fields(L, 1, "dist.init");
  JobOptions options;
  options.join_timeout_s = seconds(fields, "join_timeout_s", options.join_timeout_s);
  options.timeouts.waiting_s = seconds(fields, "timeout_s", options.timeouts.waiting_s);
  options.timeouts.silent_s = seconds(fields, "silence_s", options.timeouts.silent_s);
  options.link = read_link(L, fields);
  options.identity = read_identity(L, fields);
  const auto asked = process_environment("TRINITY_BACKEND").value_or("gloo");
  options.collectives = parse_choice<Collectives>(fields.string("backend", asked.c_str()));
  fields.refuse_unknown();
  return Job::join(read_launch_variables(process_environment), options);
}

/// job:facts() -> {rank=, size=, node=, nodes=, local_rank=, local_size=, source=}, from 0
auto job_facts(const Job& job) {
  return record("rank", job.rank(), "size", job.size(), "node", job.node(), "nodes", job.nodes(), "local_rank",
                job.local_rank(), "local_size", job.local_size(), "source", job.source());
}

/// The tensor at `index`, fit for a collective of the job in place.
const at::Tensor& buffer_arg(lua_State* L, int index, const Job& job) {
  const auto& x = tensor_arg(L, index);
  const auto dtype = x.scalar_type();
  const bool known = dtype == at::kFloat || dtype == at::kDouble || dtype == at::kLong;
  const bool here = x.is_cuda() ? x.device().index() == job.gpu() : x.device().is_cpu();
  if (!known || !here || !x.is_contiguous() || x.requires_grad())
    throw WrongArgument(index, "tensor",
                        "expected a contiguous tensor of float32, float64 or int64 on the CPU{} that needs no "
                        "gradients, got {}{}", job.gpu() < 0 ? "" : fmt::format(" or cuda:{}", job.gpu()),
                        describe_tensor(x), here ? "" : " on " + x.device().str());
  return x;
}

/// job:all_reduce(tensor, {scope=, reduction=}) -> work
auto job_all_reduce(lua_State* L, Job& job) {
  const auto& tensor = buffer_arg(L, 2, job);
  Fields fields(L, 3, "job:all_reduce");
  AllReduce options;
  options.scope = parse_scope(fields.string("scope", "world"));
  options.reduction = parse_choice<Reduction>(fields.string("reduction", "sum"));
  fields.refuse_unknown();
  if (tensor.scalar_type() == at::kLong && options.reduction == Reduction::mean)
    throw WrongArgument(2, "tensor", "expected float32 or float64 for a mean");
  return job.begin_all_reduce(tensor.detach(), options);
}

/// job:broadcast(tensor, scope, root) -> work; root is a number from 0 in the scope
auto job_broadcast(lua_State* L, Job& job) {
  const auto& tensor = buffer_arg(L, 2, job);
  const auto scope = parse_scope(string_arg(L, 3, "scope"));
  const auto root = static_cast<int>(integer_arg(L, 4, "root", 0, job.members(scope) - 1));
  return job.begin_broadcast(tensor.detach(), scope, root);
}

void job_wait(Job& job, Work& work) { job.wait(work); }

/// job:agree(what, text): ends the job unless all ranks say the same
void job_agree(lua_State* L, Job& job) {
  const auto what = string_arg(L, 2, "what"), text = string_arg(L, 3, "text");
  push_position(L);
  const std::string place = lua_tostring(L, -1);
  job.agree(place, what, text);
}

int64_t total_elements(const std::vector<at::Tensor>& tensors) {
  int64_t count = 0;
  for (const auto& x : tensors) count += x.numel();
  return count;
}

void check_total(const std::vector<at::Tensor>& tensors, const at::Tensor& flat, int index) {
  if (flat.dim() != 1 || flat.numel() != total_elements(tensors))
    throw WrongArgument(index, "flat", "expected a tensor of {} elements, got {}", total_elements(tensors),
                        describe_tensor(flat));
}

/// pack(tensors, flat, gradients): copies all values (or gradients, zeros where there are none)
/// into one vector, in order.
void dist_pack(lua_State* L) {
  const auto tensors = tensors_arg(L, 1, "tensors");
  auto flat = tensor_arg(L, 2, "flat");
  const bool gradients = flag_arg(L, 3, "gradients");
  check_total(tensors, flat, 2);
  const at::NoGradGuard no_grad;
  int64_t first = 0;
  for (const auto& x : tensors) {
    auto part = flat.narrow(0, first, x.numel());
    first += x.numel();
    if (!gradients)
      part.copy_(x.reshape(-1));
    else if (x.grad().defined())
      part.copy_(x.grad().reshape(-1));
    else
      part.zero_();
  }
}

/// unpack(flat, tensors, gradients): the way back.
void dist_unpack(lua_State* L) {
  auto flat = tensor_arg(L, 1, "flat");
  const auto tensors = tensors_arg(L, 2, "tensors");
  const bool gradients = flag_arg(L, 3, "gradients");
  check_total(tensors, flat, 1);
  const at::NoGradGuard no_grad;
  int64_t first = 0;
  for (const auto& x : tensors) {
    const auto part = flat.narrow(0, first, x.numel()).view(x.sizes());
    first += x.numel();
    if (!gradients)
      x.copy_(part);
    else if (x.grad().defined())
      x.grad().copy_(part);
    else
      x.mutable_grad() = part.to(x.options()).clone();
  }
}

constexpr luaL_Reg kJob[] = {
    TRINITY_BIND("facts", job_facts), TRINITY_BIND("all_reduce", job_all_reduce),
    TRINITY_BIND("broadcast", job_broadcast), TRINITY_BIND("wait", job_wait),
    TRINITY_BIND("barrier", [](Job& job) { job.barrier(); }), TRINITY_BIND("agree", job_agree),
    TRINITY_BIND("leave", [](Job& job) { job.close(); })};  // goodbye to the others; the facts stay
constexpr luaL_Reg kDistributeFunctions[] = {
    TRINITY_BIND("join", dist_join), TRINITY_BIND("pack", dist_pack), TRINITY_BIND("unpack", dist_unpack)};

}  // namespace

void open_distribute(lua_State* L) {
  lua_newtable(L);
  register_functions(L, kDistributeFunctions, "dist");
  lua_setfield(L, -2, "dist");
  register_type<Job>(L, kJob);
  register_type<Work>(L, {});
}

}  // namespace trinity::lua
