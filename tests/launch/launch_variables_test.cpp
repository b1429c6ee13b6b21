#include "launch/launch_variables.h"

#include <doctest/doctest.h>

#include <map>

#include "base/error.h"
#include "support/damage.h"

using namespace trinity;

namespace {

using Variables = std::map<std::string, std::string>;

LaunchVariables read(const Variables& variables) {
  return read_launch_variables([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string refusal(const Variables& variables) {
  return test::message_of<ArgumentError>([&] { read(variables); });
}

const Variables kTorchrun = {
    {"RANK", "3"},       {"WORLD_SIZE", "4"},   {"LOCAL_RANK", "1"},    {"LOCAL_WORLD_SIZE", "2"},
    {"GROUP_RANK", "1"}, {"MASTER_ADDR", "n0"}, {"MASTER_PORT", "1234"}};

Variables with(Variables variables, const Variables& changes) {
  for (const auto& [name, value] : changes) variables[name] = value;
  return variables;
}

}  // namespace

TEST_CASE("launch variables: none is a job of one process") {
  const auto found = read({});
  CHECK(found.size == 1);
  CHECK(found.rank == 0);
  CHECK(found.source == "none");
}

TEST_CASE("launch variables of torchrun") {
  const auto found = read(kTorchrun);
  CHECK(found.source == "torchrun");
  CHECK(found.rank == 3);
  CHECK(found.size == 4);
  CHECK(found.local_rank == 1);
  CHECK(found.local_size == 2);
  CHECK(found.node == "1");
  CHECK(found.address == "n0");
  CHECK(found.port == 1234);
  CHECK_FALSE(found.has_store);
  CHECK(read(with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}})).has_store);
}

TEST_CASE("launch variables of mpirun, MPICH and srun") {
  const Variables open_mpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                              {"OMPI_COMM_WORLD_SIZE", "2"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                              {"PMIX_NAMESPACE", "1234"}};
  const auto one_machine = read(open_mpi);
  CHECK(one_machine.source == "Open MPI");
  CHECK(one_machine.address == "127.0.0.1");
  CHECK(one_machine.port >= 20000);
  CHECK(read(with(open_mpi, {{"PMIX_NAMESPACE", "99"}})).port != one_machine.port);
  CHECK(read({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MASTER_ADDR", "n0"}}).source == "MPICH");

  const Variables slurm = {{"SLURM_PROCID", "5"},  {"SLURM_NTASKS", "8"},
                           {"SLURM_LOCALID", "1"}, {"SLURM_NODEID", "1"},
                           {"SLURM_JOB_ID", "7"},  {"SLURM_STEP_NODELIST", "jwb[0017,0020-24]"}};
  CHECK(read(slurm).source == "none");  // the batch shell
  const auto step = read(with(slurm, {{"SLURM_STEP_ID", "0"}}));
  CHECK(step.source == "Slurm");
  CHECK(step.rank == 5);
  CHECK(step.node == "1");
  CHECK(step.address == "jwb0017");
  // mpirun inside a step: its processes inherit the daemon's variables.
  CHECK(read(with(with(slurm, {{"SLURM_STEP_ID", "0"}}), open_mpi)).source == "Open MPI");
}

TEST_CASE("launch variables of jsrun, Flux, PALS, Kubernetes and PMIx") {
  const Variables jsm = {{"JSM_NAMESPACE_RANK", "3"},
                         {"JSM_NAMESPACE_SIZE", "8"},
                         {"JSM_NAMESPACE_LOCAL_RANK", "1"},
                         {"JSM_NAMESPACE_LOCAL_SIZE", "2"},
                         {"PMIX_RANK", "3"},
                         {"MASTER_ADDR", "n0"}};
  CHECK(read(jsm).source == "JSM");
  CHECK(read(jsm).local_rank == 1);
  CHECK(read(jsm).local_size == 2);

  const Variables flux = {{"FLUX_TASK_RANK", "2"}, {"FLUX_JOB_SIZE", "4"},
                          {"FLUX_JOB_NNODES", "1"}, {"FLUX_TASK_LOCAL_ID", "2"},
                          {"FLUX_JOB_ID", "7"},     {"PMI_RANK", "2"},
                          {"PMI_SIZE", "4"},        {"PMIX_RANK", "2"}};
  CHECK(read(flux).source == "Flux");
  CHECK(read(flux).rank == 2);
  CHECK(read(flux).address == "127.0.0.1");  // all are on one node
  CHECK(read(with(flux, {{"FLUX_JOB_ID", "8"}})).port != read(flux).port);
  CHECK(refusal(with(flux, {{"FLUX_JOB_NNODES", "2"}})).starts_with("MASTER_ADDR is not set"));
  CHECK(refusal(with(flux, {{"PMI_RANK", "1"}})) ==
        "FLUX_TASK_RANK is 2 but PMI_RANK is 1: two launchers disagree, unset the variables of "
        "one");

  const Variables pals = {{"PALS_RANKID", "5"},       {"PALS_LOCAL_RANKID", "1"},
                          {"PALS_NODEID", "1"},       {"PMI_SIZE", "8"},
                          {"PMI_LOCAL_SIZE", "4"},    {"PMI_RANK", "5"},
                          {"PALS_APID", "x-y"},       {"MASTER_ADDR", "x1000"}};
  CHECK(read(pals).source == "Cray PALS");
  CHECK(read(pals).node == "1");
  CHECK(read(pals).local_size == 4);
  CHECK(read({{"PALS_RANKID", "0"},
              {"PMI_RANK", "0"},
              {"PMI_SIZE", "2"},
              {"PMI_LOCAL_SIZE", "2"}})
            .address ==
        "127.0.0.1");
  CHECK(refusal({{"PALS_RANKID", "0"}}) ==
        "PALS_RANKID is set but PMI_SIZE is not: Cray PALS sets both");

  const Variables pod = {{"JOB_COMPLETION_INDEX", "1"}, {"WORLD_SIZE", "2"},
                         {"MASTER_ADDR", "job-0.net"}};
  CHECK(read(pod).source == "Kubernetes");
  CHECK(read(pod).rank == 1);
  CHECK(read(pod).address == "job-0.net");
  CHECK(read({{"JOB_COMPLETION_INDEX", "1"}}).size == 1);  // pods that work on their own
  CHECK(read(with(kTorchrun, {{"JOB_COMPLETION_INDEX", "0"}})).source == "torchrun");

  CHECK(read({{"PMIX_RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "n0"}}).source == "PMIx");
  CHECK(refusal({{"PMIX_RANK", "1"}}) ==
        "PMIX_RANK is set, but the number of ranks is unknown: set WORLD_SIZE, too");
}

TEST_CASE("launch variables: mpirun's own host is rank 0's where nobody names another") {
  const Variables two_hosts = {{"OMPI_COMM_WORLD_RANK", "1"},
                               {"OMPI_COMM_WORLD_SIZE", "2"},
                               {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                               {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}};
  const char* uri = "1248133120.0;tcp://10.77.0.1,10.78.0.1:57655;tcp6://[fd00::2]:43079";
  CHECK(read(with(two_hosts, {{"OMPI_MCA_orte_hnp_uri", uri}})).address == "10.77.0.1");
  CHECK(read(with(two_hosts, {{"OMPI_MCA_orte_hnp_uri", uri}, {"MASTER_ADDR", "b"}})).address ==
        "b");
  CHECK(refusal(two_hosts).starts_with("MASTER_ADDR is not set"));
  CHECK(refusal(with(two_hosts, {{"OMPI_MCA_orte_hnp_uri", "1.0;usock"}}))
            .starts_with("MASTER_ADDR is not set"));
}

TEST_CASE("launch variables: the first host of a list") {
  CHECK(first_host("n1") == "n1");
  CHECK(first_host("n1,n2") == "n1");
  CHECK(first_host("n[01-04]") == "n01");
  CHECK(first_host("n[7,9]-ib,m3") == "n7-ib");
  CHECK(first_host("") == "");
}

TEST_CASE("launch variables that are wrong are refused by name") {
  CHECK(refusal({{"RANK", "1"}}) == "RANK is set but WORLD_SIZE is not: torchrun sets both");
  CHECK(refusal({{"WORLD_SIZE", "2"}}) == "WORLD_SIZE is set but RANK is not: torchrun sets both");
  CHECK(refusal(with(kTorchrun, {{"RANK", "4"}})) ==
        "RANK is 4, expected 0 to 3 because WORLD_SIZE is 4");
  CHECK(refusal(with(kTorchrun, {{"RANK", "x"}})).starts_with("RANK is 'x', expected an integer"));
  CHECK(refusal(with(kTorchrun, {{"RANK", "1.5"}})).starts_with("RANK is '1.5'"));
  CHECK(refusal(with(kTorchrun, {{"WORLD_SIZE", "0"}})).starts_with("WORLD_SIZE is '0'"));
  CHECK(refusal(with(kTorchrun, {{"LOCAL_RANK", "2"}})) ==
        "LOCAL_RANK is 2, expected 0 to 1 because LOCAL_WORLD_SIZE is 2");
  CHECK(refusal(with(kTorchrun, {{"LOCAL_WORLD_SIZE", "5"}})) ==
        "LOCAL_WORLD_SIZE is 5, more than the 4 ranks of WORLD_SIZE");
  CHECK(refusal(with(kTorchrun, {{"MASTER_PORT", "70000"}})).starts_with("MASTER_PORT is '70000'"));
  CHECK(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}}).starts_with("MASTER_ADDR is not set"));
  CHECK(refusal(with(kTorchrun, {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "4"}})) ==
        "RANK is 3 but OMPI_COMM_WORLD_RANK is 0: two launchers disagree, unset the variables of "
        "one");
  CHECK(refusal(with(kTorchrun, {{"PMI_RANK", "3"}, {"PMI_SIZE", "8"}})) ==
        "WORLD_SIZE is 4 but PMI_SIZE is 8: two launchers disagree, unset the variables of one");
}
