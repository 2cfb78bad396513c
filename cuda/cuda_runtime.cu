/* SPDX-License-Identifier: MIT */
/* The CUDA backend's runtime: devices, memory, the stream, and CUDA's errors as statuses. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "backend/driver.h"
#include "launch.h"

static enum cua_status status_of(cudaError_t error)
{
	switch (error) {
	case cudaErrorMemoryAllocation: return CUA_ERROR_NO_MEMORY;
	case cudaErrorNoDevice:
	case cudaErrorInvalidDevice:
	case cudaErrorInsufficientDriver:
	case cudaErrorNoKernelImageForDevice:
	case cudaErrorInitializationError:
	case cudaErrorSystemDriverMismatch:
	case cudaErrorCompatNotSupportedOnDevice:
	case cudaErrorUnsupportedPtxVersion:
	case cudaErrorDevicesUnavailable:
	case cudaErrorStubLibrary:
	case cudaErrorSystemNotReady:
	case cudaErrorMpsConnectionFailed: return CUA_ERROR_NO_DEVICE;
	case cudaErrorStreamCaptureUnsupported:
	case cudaErrorStreamCaptureImplicit: return CUA_ERROR_CAPTURE;
	default: return CUA_ERROR_CUDA;
	}
}

extern "C" enum cua_status cua__cuda_status(struct cua_context *ctx, cudaError_t error)
{
	enum cua_status status;

	if (error == cudaSuccess)
		return CUA_OK;
	/* clears an error that is not sticky, so that the user's next call does not report it */
	cudaGetLastError();
	status = status_of(error);
	if (ctx && (status == CUA_ERROR_CUDA || status == CUA_ERROR_NO_DEVICE))
		ctx->cuda_error = (int)error;
	return status;
}

/* Its attributes are available only if this build has code for the device. */
static __global__ void probe_kernel(void)
{
}

static enum cua_status cuda_device_count(int *count)
{
	int n = 0;

	/* a machine without a suitable driver is a machine without devices */
	if (cudaGetDeviceCount(&n) != cudaSuccess) {
		cudaGetLastError();
		n = 0;
	}
	*count = n;
	return CUA_OK;
}

/*
 * Whether this build has code for the device; *attributes receives that code's. Keeps the current
 * device.
 */
static cudaError_t probe(int device, struct cudaFuncAttributes *attributes)
{
	cudaError_t error;
	int previous = -1;

	if (cudaGetDevice(&previous) != cudaSuccess)
		previous = -1;
	error = cudaSetDevice(device);
	if (error == cudaSuccess)
		error = cudaFuncGetAttributes(attributes, (const void *)probe_kernel);
	cudaGetLastError();
	if (previous >= 0 && previous != device)
		cudaSetDevice(previous);
	return error == cudaErrorInvalidDeviceFunction ? cudaErrorNoKernelImageForDevice : error;
}

static const char *cuda_device_problem(int device)
{
	struct cudaFuncAttributes attributes;
	int count = 0, driver = 0;
	cudaError_t error = cudaGetDeviceCount(&count);

	cudaGetLastError();
	if (error == cudaErrorNoDevice || (error == cudaSuccess && !count))
		return "the CUDA driver shows no device";
	if (error == cudaSuccess && device >= count)
		return "no such device";
	if (error == cudaSuccess)
		error = probe(device, &attributes);
	switch (error) {
	case cudaSuccess: return "";
	case cudaErrorInsufficientDriver:
		/* a missing driver gives the same error */
		if (cudaDriverGetVersion(&driver) == cudaSuccess && driver)
			return "the CUDA driver is older than the CUDA runtime of this library";
		cudaGetLastError();
		return "no CUDA driver is installed";
	case cudaErrorNoKernelImageForDevice:
		return "this library has no code for the architecture of the device";
	default: return cudaGetErrorString(error);
	}
}

/* An attribute, or 0 if the driver does not know it. */
static int attribute(int device, enum cudaDeviceAttr which)
{
	int value = 0;

	if (cudaDeviceGetAttribute(&value, which, device) != cudaSuccess || value < 0) {
		cudaGetLastError();
		return 0;
	}
	return value;
}

/* From attributes: CUDA 13 has no clocks in cudaDeviceProp. */
static void describe_hardware(int device, struct cua_device_info *info)
{
	info->cache_bytes = (uint64_t)attribute(device, cudaDevAttrL2CacheSize);
	info->clock_mhz = (uint32_t)attribute(device, cudaDevAttrClockRate) / 1000;
	info->memory_clock_mhz = (uint32_t)attribute(device, cudaDevAttrMemoryClockRate) / 1000;
	info->memory_bus_bits = (uint32_t)attribute(device, cudaDevAttrGlobalMemoryBusWidth);
	info->block_shared_bytes =
		(uint32_t)attribute(device, cudaDevAttrMaxSharedMemoryPerBlockOptin);
	info->processor_shared_bytes =
		(uint32_t)attribute(device, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
	info->ecc = attribute(device, cudaDevAttrEccEnabled);
	info->managed_memory = attribute(device, cudaDevAttrManagedMemory);
	info->concurrent_managed_access = attribute(device, cudaDevAttrConcurrentManagedAccess);
	info->host_native_atomics = attribute(device, cudaDevAttrHostNativeAtomicSupported);
	info->cooperative_launch = attribute(device, cudaDevAttrCooperativeLaunch);
	info->memory_pools = attribute(device, cudaDevAttrMemoryPoolsSupported);
}

static enum cua_status cuda_device_query(int device, struct cua_device_info *info)
{
	struct cudaDeviceProp p;
	enum cua_status status;
	unsigned char id[16];
	int count;

	cuda_device_count(&count);
	if (device >= count)
		return CUA_ERROR_NO_DEVICE;
	status = cua__cuda_status(NULL, cudaGetDeviceProperties(&p, device));
	if (status)
		return status;
	snprintf(info->name, sizeof(info->name), "%.*s", (int)sizeof(info->name) - 1, p.name);
	info->compute_major = p.major;
	info->compute_minor = p.minor;
	info->processors = (uint32_t)p.multiProcessorCount;
	info->memory_bytes = p.totalGlobalMem;
	memcpy(id, &p.uuid, sizeof(id));
	for (size_t i = 0, n = 0; i < sizeof(id); i++)
		n += (size_t)snprintf(info->uuid + n, sizeof(info->uuid) - n, "%s%02x",
				      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
	cua__driver_version(info->driver, sizeof(info->driver));
	if (cudaDeviceGetPCIBusId(info->pci_bus_id, (int)sizeof(info->pci_bus_id), device) !=
	    cudaSuccess)
		info->pci_bus_id[0] = 0;
	if (cudaDriverGetVersion(&info->driver_cuda) != cudaSuccess)
		info->driver_cuda = 0;
	if (cudaRuntimeGetVersion(&info->runtime_cuda) != cudaSuccess)
		info->runtime_cuda = 0;
	cudaGetLastError();
	describe_hardware(device, info);
	return CUA_OK;
}

/* An attribute of the link between two devices, or 0 if there is none. */
static int peer_attribute(int device, int peer, enum cudaDeviceP2PAttr which)
{
	int value = 0;

	if (cudaDeviceGetP2PAttribute(&value, which, device, peer) != cudaSuccess || value < 0) {
		cudaGetLastError();
		return 0;
	}
	return value;
}

static enum cua_status cuda_device_peer_query(int device, int peer, struct cua_peer_info *info)
{
	enum cua_status status;
	int count;

	cuda_device_count(&count);
	if (device >= count || peer >= count)
		return CUA_ERROR_NO_DEVICE;
	/* CUDA refuses to describe the access of a device to itself */
	if (device == peer) {
		info->access = 1;
		info->native_atomics = 1;
		info->array_access = 1;
		return CUA_OK;
	}
	status = cua__cuda_status(NULL, cudaDeviceCanAccessPeer(&info->access, device, peer));
	if (status)
		return status;
	if (info->access) {
		info->native_atomics =
			peer_attribute(device, peer, cudaDevP2PAttrNativeAtomicSupported);
		info->array_access =
			peer_attribute(device, peer, cudaDevP2PAttrCudaArrayAccessSupported);
	}
	info->performance_rank = peer_attribute(device, peer, cudaDevP2PAttrPerformanceRank);
	return CUA_OK;
}

static int cuda_enter(struct cua_context *ctx)
{
	int previous = -1;

	if (cudaGetDevice(&previous) != cudaSuccess)
		previous = -1;
	if (previous != ctx->device)
		cua__cuda_status(ctx, cudaSetDevice(ctx->device));
	return previous;
}

static void cuda_leave(struct cua_context *ctx, int previous)
{
	if (previous >= 0 && previous != ctx->device)
		cua__cuda_status(ctx, cudaSetDevice(previous));
}

static enum cua_status cuda_open(struct cua_context *ctx, int device)
{
	struct cudaFuncAttributes attributes;
	int value = 0, count;
	cudaError_t error;

	cuda_device_count(&count);
	if (device >= count)
		return CUA_ERROR_NO_DEVICE;
	error = probe(device, &attributes);
	if (error == cudaSuccess)
		error = cudaDeviceGetAttribute(&ctx->processors, cudaDevAttrMultiProcessorCount,
					       device);
	if (error == cudaSuccess)
		error = cudaDeviceGetAttribute(&ctx->pageable_access,
					       cudaDevAttrPageableMemoryAccess, device);
	if (error == cudaSuccess)
		error = cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin,
					       device);
	ctx->shared_bytes = (size_t)value;
	if (error == cudaSuccess)
		error = cudaDeviceGetAttribute(&value, cudaDevAttrL2CacheSize, device);
	ctx->kept_bytes = (size_t)value / 3;
	if (error == cudaSuccess)
		error = cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, device);
	/*
	 * code compiled for an older architecture and translated for this one does not wait for its
	 * predecessor
	 */
	ctx->early_launch = value >= 9 && attributes.ptxVersion >= 90;
	return cua__cuda_status(NULL, error);
}

static void cuda_close(struct cua_context *ctx)
{
	(void)ctx;
}

static enum cua_status cuda_may_wait(struct cua_context *ctx)
{
	enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
	enum cua_status status =
		cua__cuda_status(ctx, cudaStreamIsCapturing((cudaStream_t)ctx->stream, &capture));

	if (status)
		return status;
	return capture == cudaStreamCaptureStatusNone ? CUA_OK : CUA_ERROR_CAPTURE;
}

static enum cua_status cuda_synchronize(struct cua_context *ctx)
{
	enum cudaStreamCaptureMode mode = relax();
	cudaError_t error = cudaStreamSynchronize((cudaStream_t)ctx->stream);

	restore(mode);
	return cua__cuda_status(ctx, error);
}

static enum cua_status cuda_query(struct cua_context *ctx, int *done)
{
	enum cudaStreamCaptureMode mode = relax();
	cudaError_t error = cudaStreamQuery((cudaStream_t)ctx->stream);

	*done = error == cudaSuccess;
	restore(mode);
	if (error == cudaErrorNotReady) {
		cudaGetLastError();
		error = cudaSuccess;
	}
	return cua__cuda_status(ctx, error);
}

static enum cua_status cuda_locate(struct cua_context *ctx, const void *p,
				   struct cua__location *where)
{
	struct cudaPointerAttributes a;
	enum cua_status status;

	memset(where, 0, sizeof(*where));
	where->owner = CUA_BACKEND_CPU;
	where->device = -1;
	where->address = p;
	where->host_access = 1;
	status = cua__cuda_status(ctx, cudaPointerGetAttributes(&a, p));
	if (status)
		return status;
	if (a.type == cudaMemoryTypeUnregistered) {
		cua__cpu_runtime.locate(ctx, p, where);
		where->pageable = 1;
		where->memory_kind =
			ctx->pageable_access ? CUA__MEMORY_KIND_BACKEND : CUA__MEMORY_KIND_HOST;
		return CUA_OK;
	}
	where->memory_kind = CUA__MEMORY_KIND_BACKEND;
	if (a.type == cudaMemoryTypeHost) {
		/* registered memory may have a different address on the device */
		if (a.devicePointer)
			where->address = a.devicePointer;
		else
			where->memory_kind = CUA__MEMORY_KIND_HOST;
	} else {
		where->owner = CUA_BACKEND_CUDA;
		where->device = a.device;
		where->host_access = a.type == cudaMemoryTypeManaged;
		if (a.type == cudaMemoryTypeDevice && a.device != ctx->device)
			where->memory_kind = CUA__MEMORY_KIND_OTHER;
	}
	return CUA_OK;
}

static void cuda_extent(const void *p, struct cua__location *where)
{
	struct cua__driver_pointer known;

	if (!where->base && cua__driver_query(p, &known)) {
		where->base = known.base;
		where->size = known.size;
	}
}

static enum cua_status cuda_allocate(struct cua_context *ctx, size_t bytes, void **p)
{
	enum cudaStreamCaptureMode mode = relax();
	cudaError_t error = cudaMalloc(p, bytes ? bytes : 1);

	restore(mode);
	return cua__cuda_status(ctx, error);
}

/*
 * Memory for host and device at the same time: atomics of both must be mutually atomic, and managed
 * memory must be accessible to both concurrently.
 */
static enum cua_status cuda_allocate_system(struct cua_context *ctx, size_t bytes, void **p)
{
	enum cudaStreamCaptureMode mode;
	int atomics = 0, concurrent = 0;
	cudaError_t error;

	error = cudaDeviceGetAttribute(&atomics, cudaDevAttrHostNativeAtomicSupported, ctx->device);
	if (error == cudaSuccess)
		error = cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess,
					       ctx->device);
	if (error == cudaSuccess && !(atomics && concurrent))
		return CUA_ERROR_UNSUPPORTED;
	if (error == cudaSuccess) {
		mode = relax();
		error = cudaMallocManaged(p, bytes ? bytes : 1, cudaMemAttachGlobal);
		restore(mode);
	}
	return cua__cuda_status(ctx, error);
}

static enum cua_status cuda_release(struct cua_context *ctx, void *p)
{
	enum cudaStreamCaptureMode mode = relax();
	cudaError_t error = cudaFree(p);

	restore(mode);
	if (error == cudaErrorInvalidValue || error == cudaErrorInvalidDevicePointer) {
		cua__cuda_status(NULL, error);
		return CUA_ERROR_MEMORY_KIND;
	}
	return cua__cuda_status(ctx, error);
}

static enum cua_status cuda_allocate_mapped(struct cua_context *ctx, size_t bytes, void **p)
{
	enum cudaStreamCaptureMode mode = relax();
	void *host = NULL, *device = NULL;
	cudaError_t error;

	error = cudaHostAlloc(&host, bytes ? bytes : 1,
			      cudaHostAllocMapped | cudaHostAllocPortable);
	if (error == cudaSuccess) {
		error = cudaHostGetDevicePointer(&device, host, 0);
		/* the same address for both, as on every 64-bit system */
		if (error == cudaSuccess && device != host)
			error = cudaErrorNotSupported;
		if (error != cudaSuccess)
			cudaFreeHost(host);
	}
	restore(mode);
	if (error == cudaSuccess)
		*p = host;
	return cua__cuda_status(ctx, error);
}

static enum cua_status cuda_release_mapped(struct cua_context *ctx, void *p)
{
	enum cudaStreamCaptureMode mode = relax();
	cudaError_t error = cudaFreeHost(p);

	restore(mode);
	return cua__cuda_status(ctx, error);
}

static enum cua_status cuda_copy(struct cua_context *ctx, void *dst, const void *src, size_t bytes)
{
	enum cudaStreamCaptureMode mode;
	cudaError_t error;

	if (!bytes)
		return CUA_OK;
	/* a copy of ordinary host memory waits */
	mode = relax();
	error = cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, (cudaStream_t)ctx->stream);
	restore(mode);
	return cua__cuda_status(ctx, error);
}

static enum cua_status cuda_set_bytes(struct cua_context *ctx, void *dst, int byte, size_t bytes)
{
	if (!bytes)
		return CUA_OK;
	return cua__cuda_status(ctx, cudaMemsetAsync(dst, byte, bytes, (cudaStream_t)ctx->stream));
}

static enum cua_status cuda_allocate_zeros(struct cua_context *ctx, size_t bytes, void **p)
{
	enum cua_status status = cuda_allocate(ctx, bytes, p);

	if (!status) {
		status = cuda_set_bytes(ctx, *p, 0, bytes);
		if (status)
			cuda_release(ctx, *p);
	}
	return status;
}

static enum cua_status cuda_memory_info(struct cua_context *ctx, uint64_t *free_bytes,
					uint64_t *total_bytes)
{
	size_t available = 0, total = 0;
	enum cua_status status = cua__cuda_status(ctx, cudaMemGetInfo(&available, &total));

	*free_bytes = available;
	*total_bytes = total;
	return status;
}

/*
 * In the order of the struct's members: the C++ version that nvcc uses by default has no designated
 * initializers.
 */
const struct cua__runtime cua__cuda_runtime = {
	CUA_BACKEND_CUDA,
	cuda_device_count,
	cuda_device_query,
	cuda_device_peer_query,
	cuda_device_problem,
	cuda_open,
	cuda_close,
	cuda_enter,
	cuda_leave,
	cuda_may_wait,
	cuda_synchronize,
	cuda_locate,
	cuda_extent,
	cuda_allocate,
	cuda_allocate_system,
	cuda_release,
	cuda_allocate_mapped,
	cuda_release_mapped,
	cuda_copy,
	cuda_set_bytes,
	cuda_memory_info,
	cuda_allocate_zeros,
	NULL,
	cuda_query,
};
