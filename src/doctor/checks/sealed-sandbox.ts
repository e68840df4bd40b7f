import { baseImageName, baseImageRecipe } from '../../base-image/recipe.ts';
import { unmetWishes } from '../../engine/capabilities.ts';
import type { ContainerSpec } from '../../engine/container/container-spec.ts';
import type { Engine } from '../../engine/engine.ts';
import { plainRuntimes } from '../../engine/port/engine-port.ts';
import { present } from '../../text/printable.ts';
import { type Check, engineCheck, type Finding, fail, ok, skipped, warn } from '../examine.ts';
import type { SandboxRuntime } from './engine-content.ts';

/** A kernel of the sandbox's own needs memory and threads within these limits. */
function limitsOf(isPlain: boolean) {
  return {
    memoryBytes: (isPlain ? 96 : 256) * 1024 ** 2,
    pids: isPlain ? 48 : 128,
    cpus: 0.5,
    diskBytes: 2 ** 30,
  };
}

/**
 * Prints the limits that a process inside the sandbox sees, in lines of `name value`. Control groups of
 * version 1 and 2 have different files.
 */
const look = `
awk '/^(NoNewPrivs|Seccomp|CapBnd):/ { print $1, $2 }' /proc/self/status
echo "networks: $(awk -F: 'NR > 2 { print $1 }' /proc/net/dev | tr -s '\\n ' ' ')"
cd /sys/fs/cgroup
for file in memory/memory.limit_in_bytes memory.max; do [ -r $file ] && echo "memory: $(cat $file)"; done
for file in memory/memory.memsw.limit_in_bytes; do [ -r $file ] && echo "memory+swap: $(cat $file)"; done
for file in memory.swap.max; do [ -r $file ] && echo "swap: $(cat $file)"; done
for file in pids/pids.max pids.max; do [ -r $file ] && echo "pids: $(cat $file)"; done
[ -r cpu.max ] && echo "cpu: $(awk '{ print $1 / $2 }' cpu.max)"
[ -r cpu/cpu.cfs_quota_us ] && echo "cpu: $(awk -v period="$(cat cpu/cpu.cfs_period_us)" '{ print $1 / period }' cpu/cpu.cfs_quota_us)"
python3 -c "$REACH_FORBIDDEN"
true`;

/** Another machine's disk, another storage than overlay2, or a process that is not root. */
const uncounted =
  "a disk limit by the engine's own count, which leaves out deleted files that are still open, and may count holes of sparse files";

/** The expected values. A limit of a control group that cannot be read from inside counts as correct. */
function expectedOf({ memoryBytes, pids, cpus }: ReturnType<typeof limitsOf>): Record<string, string> {
  return {
    NoNewPrivs: '1',
    // CHOWN, DAC_OVERRIDE, FOWNER, SETGID, SETUID.
    CapBnd: '00000000000000cb',
    networks: 'lo',
    memory: String(memoryBytes),
    'memory+swap': String(memoryBytes),
    swap: '0',
    pids: String(pids),
    cpu: String(cpus),
  };
}
const always = ['CapBnd', 'networks'];
/** What the program prints if the filter works. */
const forbiddenReached: Readonly<Record<string, string>> = {
  'socket families': 'unix inet inet6 netlink',
  'forbidden calls': 'none',
  '32-bit calls': 'none',
};

/** Names whose values are missing, or different, in a runtime with a kernel of its own. */
const ofMachine = ['NoNewPrivs', 'pids', 'cpu'];
const filtered = { Seccomp: '2', ...forbiddenReached };

/**
 * The check that starts a sandbox of one runtime and looks at its limits from inside, because an engine may
 * not do what it says.
 */
export function sealedSandbox(used: SandboxRuntime): Check {
  const name = used.runtime === undefined ? 'sealed sandbox' : `sealed sandbox (${used.runtime})`;
  return engineCheck(name, (engine, { signal }) => lookInside(used, engine, signal));
}

async function lookInside(
  { runtime, mayLackFilter }: SandboxRuntime,
  engine: Engine,
  signal: AbortSignal,
): Promise<Finding> {
  const { runtimes, defaultRuntime } = engine.capabilities;
  if (runtime !== undefined && !runtimes.includes(runtime))
    return skipped('the engine does not know this runtime');
  const image = await engine.findImage(baseImageName(baseImageRecipe), signal);
  if (image === undefined) return skipped('no base image to start a sandbox from');
  const isPlain = plainRuntimes.includes(runtime ?? defaultRuntime);
  const limits = limitsOf(isPlain);
  const expected = expectedOf(limits);
  const spec: ContainerSpec = {
    imageId: image.id,
    network: 'none',
    security: 'compatible',
    ...limits,
    workingDir: '/workspace',
    runtime,
    filter: mayLackFilter ? 'if-available' : 'required',
  };
  const lacks = unmetWishes(spec, engine.capabilities);
  await using sandbox = await engine.createContainer(spec, signal);
  await sandbox.start(signal);
  const seen = await sandbox.exec({
    argv: ['/bin/sh', '-c', look],
    env: { REACH_FORBIDDEN: reachForbidden },
    timeoutMs: 30_000,
    signal,
  });
  const seesDisk = await sandbox.seesDisk(signal);
  const facts = new Map(
    seen.stdout.text.split('\n').flatMap((line): [string, string][] => {
      const [name, value] = line.split(/: ?/);
      return name && value !== undefined ? [[name, value.trim()]] : [];
    }),
  );
  if (!isPlain) for (const name of ofMachine) facts.delete(name);
  const isFiltered = lacks.length === 0;
  const demanded = [
    ...always,
    ...(isPlain ? ['NoNewPrivs'] : []),
    ...(isFiltered ? Object.keys(filtered) : []),
  ];
  const wrong = Object.entries({ ...expected, ...(isFiltered && filtered) })
    .filter(([name, value]) => (facts.get(name) ?? (demanded.includes(name) ? 'unknown' : value)) !== value)
    .map(([name, value]) => `${name} is ${facts.get(name) ?? 'unknown'}, not ${value}`);
  if (wrong.length > 0)
    return fail(
      `from inside: ${wrong.join('; ')}`,
      'This engine does not enforce the limits of containers. Use another engine.',
    );
  const unseen = ['memory', 'pids', 'cpu'].filter((name) => !facts.has(name));
  const quota = sandbox.hasQuota ? 'a disk quota of the storage, and ' : '';
  const holds = present([
    `holds, seen from inside: no network, five capabilities${isPlain ? ', no-new-privileges' : ''}`,
    isFiltered && '64-bit system calls only, none of the forbidden ones, sockets of four families',
    unseen.length === 0 && 'limits',
    seesDisk ? 'an exact disk limit' : `${quota}${uncounted}`,
  ]).join(', ');
  const unseenLimits = unseen.length > 0 ? `; limits of ${unseen.join(', ')} cannot be seen there` : '';
  if (!isFiltered)
    return warn(
      `${holds}; without ${lacks.join('; ')}${unseenLimits}`,
      isPlain
        ? 'If you do not trust the agents, use an engine with filters. Results say what was missing.'
        : 'Nothing to do if the runtime has a kernel of its own, as gVisor and Kata have: it stands in place of the filter.',
    );
  if (unseen.length === 0) return ok(holds);
  return warn(
    `${holds}${unseenLimits}`,
    'Nothing to do if the runtime is known to enforce them (gVisor, Kata).',
  );
}

/**
 * Tries, in the base image's Python, the calls that Offsite's filter refuses. Prints those that succeeded, in
 * lines of `name: values`. The arguments of each call are such that a successful call does nothing.
 */
const reachForbidden = `
import ctypes, errno, os, platform, socket
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == 'x86_64'

def opens(family):
    for kind in (1, 2, 3, 5):
        try:
            socket.socket(family, kind).close()
            return True
        except OSError:
            pass

known = {family.value: family.name[3:].lower() for family in socket.AddressFamily}
families = [known.get(family, str(family)) for family in range(64) if opens(family)]
print('socket families:', *families)

# Numbers on x86-64 and on 64-bit ARM.
calls = {
    'bpf': (321, 280), 'io_uring': (425, 425), 'keyctl': (250, 219), 'mount': (165, 40), 'perf_event_open': (298, 241),
    'open_by_handle_at': (304, 265), 'setns': (308, 268), 'unshare': (272, 97), 'userfaultfd': (323, 282),
}
def reached(number):
    return libc.syscall(number, 0, 0, 0, 0) != -1 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS)
print('forbidden calls:', *[name for name, numbers in calls.items() if reached(numbers[0 if x86 else 1])] or ['none'])

def answers(number):
    """Whether getpid succeeds through int 0x80. A child calls it, because the kernel may kill the caller."""
    libc.mmap.restype = ctypes.c_void_p
    code = bytes.fromhex('89f8cd80c3')
    page = libc.mmap(None, 4096, 7, 0x62, -1, 0)
    ctypes.memmove(page, code, len(code))
    child = os.fork()
    if child == 0:
        os._exit(0 if ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint)(page)(number) > 0 else 1)
    return os.waitpid(child, 0)[1] == 0
print('32-bit calls:', 'answered' if x86 and answers(20) else 'none')
`;
