# SPDX-License-Identifier: MIT
# Builds the examples against the installed cuatomic that pkg-config finds. The Makefile of the installed folder:
#
#     cp -r /usr/share/doc/cuatomic/examples .
#     make -C examples              all programs, each in its folder
#     make -C examples bfs          one of them
#     make -C examples CUDA=        the programs in CUDA too by the C compiler, for the CPU
#
# CC, CFLAGS, NVCC, NVCCFLAGS, PKG_CONFIG     the tools, for example PKG_CONFIG='pkg-config --static'
# CUDA                                        empty: nvcc is not used [yes, if there is nvcc]
CFLAGS ?= -O2 -g
PKG_CONFIG ?= pkg-config
NVCC ?= $(or $(shell command -v nvcc),$(wildcard /usr/local/cuda/bin/nvcc))
CUDA ?= $(NVCC)
# The headers need compute capability 7.0. nvcc before CUDA 13 compiles for 5.2 if -arch=native finds no GPU.
ifeq ($(origin NVCCFLAGS),undefined)
modern := __device__ int modern[__CUDA_ARCH__ < 700 ? -1 : 1];
arch := $(if $(CUDA),$(shell echo '$(modern)' | $(NVCC) -arch=native -ptx -x cu - -o /dev/null 2>/dev/null && echo native))
NVCCFLAGS := -O2 -arch=$(or $(arch),sm_75)
endif

c_programs := group-by log-dedup sum
cuda_programs := assembly bfs dot neighbours word-count
skipped :=

has = $(shell $(PKG_CONFIG) --exists $(1) && echo yes)
ifneq ($(call has,cuatomic),yes)
$(error $(PKG_CONFIG) does not find cuatomic: PKG_CONFIG_PATH has to name the folder of cuatomic.pc)
endif
ifeq ($(call has,zlib),yes)
c_programs += kmer-count
else
skipped += kmer-count
endif
ifeq ($(call has,libpng),yes)
c_programs += equalize
else
skipped += equalize
endif
flags_kmer-count := $(shell $(PKG_CONFIG) --cflags zlib 2>/dev/null)
libs_kmer-count := $(shell $(PKG_CONFIG) --libs zlib 2>/dev/null)
flags_equalize := $(shell $(PKG_CONFIG) --cflags libpng 2>/dev/null)
libs_equalize := $(shell $(PKG_CONFIG) --libs libpng 2>/dev/null)
flags := $(shell $(PKG_CONFIG) --cflags cuatomic)
libs := $(shell $(PKG_CONFIG) --libs cuatomic) -lpthread

programs := $(c_programs) $(cuda_programs)
c_files := $(foreach p,$(c_programs),$(p)/$(p))
cuda_files := $(foreach p,$(cuda_programs),$(p)/$(p))

.PHONY: all clean $(programs) $(skipped)
all: $(programs) $(skipped)
$(skipped):
	@echo "$@ is skipped: pkg-config does not find its library, $(if $(filter equalize,$@),libpng,zlib)"
clean:
	rm -f $(c_files) $(cuda_files)
.SECONDEXPANSION:
$(programs): $$@/$$@
$(c_files): $$(wildcard $$(@D)/*.[ch])
	$(CC) -std=gnu11 -Wall -Wextra $(CFLAGS) $(flags_$(@D)) $(flags) $(filter %.c,$^) $(LDFLAGS) $(libs_$(@D)) \
	  $(libs) -o $@
$(cuda_files): $$@.cu
ifneq ($(CUDA),)
	$(NVCC) $(NVCCFLAGS) $(flags) $< $(libs) -o $@
else
	$(CC) -std=gnu11 -Wall -Wextra $(CFLAGS) $(flags) -x c $< -x none $(LDFLAGS) $(libs) -o $@
endif
