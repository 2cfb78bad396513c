/* SPDX-License-Identifier: MIT */
/*
 * The CUDA runtime as a model on the CPU; see cuda_model.h. The names are CUDA's, as far as the CUDA backend and its
 * tests use them. The values of constants need not be CUDA's.
 */
#ifndef CUATOMIC_TESTS_CUDA_RUNTIME_API_H
#define CUATOMIC_TESTS_CUDA_RUNTIME_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cudaError {
	cudaSuccess,
	cudaErrorInvalidValue,
	cudaErrorMemoryAllocation,
	cudaErrorInitializationError,
	cudaErrorInvalidConfiguration,
	cudaErrorInvalidDevicePointer,
	cudaErrorStubLibrary,
	cudaErrorInsufficientDriver,
	cudaErrorDevicesUnavailable,
	cudaErrorInvalidDeviceFunction,
	cudaErrorNoDevice,
	cudaErrorInvalidDevice,
	cudaErrorInvalidResourceHandle,
	cudaErrorNoKernelImageForDevice,
	cudaErrorUnsupportedPtxVersion,
	cudaErrorNotReady,
	cudaErrorPeerAccessAlreadyEnabled,
	cudaErrorTooManyPeers,
	cudaErrorNotSupported,
	cudaErrorSystemNotReady,
	cudaErrorSystemDriverMismatch,
	cudaErrorCompatNotSupportedOnDevice,
	cudaErrorMpsConnectionFailed,
	cudaErrorStreamCaptureUnsupported,
	cudaErrorStreamCaptureInvalidated,
	cudaErrorStreamCaptureUnjoined,
	cudaErrorStreamCaptureUnmatched,
	cudaErrorStreamCaptureWrongThread,
	cudaErrorStreamCaptureIsolation,
	cudaErrorStreamCaptureImplicit
} cudaError_t;

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)

enum { cudaStreamNonBlocking = 1 };
enum { cudaEventDisableTiming = 2 };
enum { cudaHostAllocPortable = 1, cudaHostAllocMapped = 2 };
enum { cudaMemAttachGlobal = 1 };
enum cudaMemcpyKind {
	cudaMemcpyHostToHost,
	cudaMemcpyHostToDevice,
	cudaMemcpyDeviceToHost,
	cudaMemcpyDeviceToDevice,
	cudaMemcpyDefault
};
enum cudaStreamCaptureStatus {
	cudaStreamCaptureStatusNone,
	cudaStreamCaptureStatusActive,
	cudaStreamCaptureStatusInvalidated
};
enum cudaStreamCaptureMode {
	cudaStreamCaptureModeGlobal,
	cudaStreamCaptureModeThreadLocal,
	cudaStreamCaptureModeRelaxed
};
enum cudaMemoryType {
	cudaMemoryTypeUnregistered,
	cudaMemoryTypeHost,
	cudaMemoryTypeDevice,
	cudaMemoryTypeManaged
};
enum cudaDeviceAttr {
	cudaDevAttrClockRate,
	cudaDevAttrComputeCapabilityMajor,
	cudaDevAttrConcurrentManagedAccess,
	cudaDevAttrCooperativeLaunch,
	cudaDevAttrEccEnabled,
	cudaDevAttrGlobalMemoryBusWidth,
	cudaDevAttrHostNativeAtomicSupported,
	cudaDevAttrL2CacheSize,
	cudaDevAttrManagedMemory,
	cudaDevAttrMaxPitch,
	cudaDevAttrMaxSharedMemoryPerBlockOptin,
	cudaDevAttrMaxSharedMemoryPerMultiprocessor,
	cudaDevAttrMemoryClockRate,
	cudaDevAttrMemoryPoolsSupported,
	cudaDevAttrMultiProcessorCount,
	cudaDevAttrPageableMemoryAccess
};
enum cudaDeviceP2PAttr {
	cudaDevP2PAttrCudaArrayAccessSupported,
	cudaDevP2PAttrNativeAtomicSupported,
	cudaDevP2PAttrPerformanceRank
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };

struct cudaFuncAttributes {
	int ptxVersion;
};

struct cudaDeviceProp {
	char name[256];
	struct {
		char bytes[16];
	} uuid;
	size_t totalGlobalMem;
	int major, minor, multiProcessorCount;
};

typedef struct cudaPointerAttributes {
	enum cudaMemoryType type;
	int device;
	void *devicePointer, *hostPointer;
} cudaPointerAttributes;

cudaError_t cudaGetLastError(void);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr which, int device);
cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int device);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr which, int device,
				      int peer);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *kernel);
cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute which, int value);

cudaError_t cudaMalloc(void **p, size_t bytes);
cudaError_t cudaMallocManaged(void **p, size_t bytes, unsigned flags);
cudaError_t cudaFree(void *p);
cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned flags);
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags);
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaMemGetInfo(size_t *available, size_t *total);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *p);
cudaError_t cudaMemset(void *p, int byte, size_t bytes);
cudaError_t cudaMemsetAsync(void *p, int byte, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
			    cudaStream_t stream);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
			      size_t width, size_t height, enum cudaMemcpyKind kind,
			      cudaStream_t stream);

cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status);
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
				     unsigned long long *id);
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
				 unsigned long long flags);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
					  unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventDestroy(cudaEvent_t event);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_TESTS_CUDA_RUNTIME_API_H */
