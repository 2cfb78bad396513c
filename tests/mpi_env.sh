# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Sourced by the tests that start MPI programs. Open MPI: as root in a container, with more processes than processors,
# without other machines.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
  OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_plm_rsh_agent=true \
  OMPI_MCA_orte_abort_print_stack=0
