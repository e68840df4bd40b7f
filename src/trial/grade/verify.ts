import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Container } from '../../engine/container.ts';
import type { Cause } from '../../record/cause.ts';
import { runVerify, type Verification, type VerifyRequest } from '../../validate/verify.ts';
import { copiedRepository, copyWorkspace, gitSettings } from '../../validate/workspace-copy.ts';
import { largestWorkspace, protectedBefore } from '../collect/collect.ts';
import { changedFiles } from '../collect/read-workspace.ts';
import {
  cachesApart,
  contentsOf,
  existingPaths,
  isCache,
  leftOutOf,
  listed,
  type OwnChanges,
  protectedState,
  protectionOf,
  systemChanges,
  unexplained,
} from '../collect/system-changes.ts';
import { FreshSandbox, type OpenRecord, type Phase, type TrialSandbox } from '../phase.ts';
import { gradingEnvironment } from '../prepare/environment.ts';
import type { StartedSandbox } from '../prepare/started-sandbox.ts';
import type { TrialSpec } from '../spec.ts';

/** What verify finds in a case that has none. */
const nothingToRun: OpenRecord = { verifySteps: [] };

/** Runs the case's verify steps, in a fresh sandbox unless the case sets `in: same`. */
export const verify: Phase = {
  name: 'verify',
  idle: (spec) => (spec.verify === undefined ? nothingToRun : undefined),
  run,
};

/**
 * Python writes no bytecode, which would be an unintended change of the system. It also reads no bytecode
 * beside a source file, because that could be a program other than its source, protected or not.
 */
const withoutBytecode = { PYTHONDONTWRITEBYTECODE: '1', PYTHONPYCACHEPREFIX: '/proc/no-bytecode' };

/** The request that runs the case's verify. Undefined if the case has none. */
export function verifyRequest(
  spec: TrialSpec,
  { container, parts, signal }: TrialSandbox,
): VerifyRequest | undefined {
  if (spec.verify === undefined) return undefined;
  return {
    script: spec.verify,
    env: {
      ...gradingEnvironment(spec.gradingVariables ?? spec.variables, container),
      ...withoutBytecode,
      ...gitSettings(copiedRepository),
    },
    cwd: container.workingDir,
    timeoutMs: spec.sandbox.timeouts.verify,
    clock: parts.clock,
    signal,
  };
}

async function run(spec: TrialSpec, sandbox: TrialSandbox, found: OpenRecord): Promise<OpenRecord> {
  const request = verifyRequest(spec, sandbox);
  if (!request) return nothingToRun;
  const inPlace = spec.verifyPlace.in === 'same' ? inSame : inFresh;
  return inPlace(spec, sandbox, found, request);
}

async function inFresh(
  spec: TrialSpec,
  agents: TrialSandbox,
  found: OpenRecord,
  request: VerifyRequest,
): Promise<OpenRecord> {
  const { container, signal, graders } = agents;
  const sandbox = await graders.verify.sandbox();
  const largest = await largestWorkspace(spec, agents, found);
  const copied = await copyWorkspace(container, sandbox.container, {
    maxBytes: largest,
    carry: found.carry,
    packed: found.packed,
    leftOut: leftOutOf(spec),
    signal,
  });
  if (copied.kind === 'refused') {
    return { verdict: 'void', cause: taskCause(`verify could not be run: the workspace ${copied.why}`) };
  }
  // What is there does not count as written by verify. In a container that only has its image, nothing is.
  const isEmpty = found.carry === 'nothing' && sandbox.isCommittable && sandbox.startUp === undefined;
  if (!isEmpty) await sandbox.container.forgiveDisk(signal);
  const verification = await runVerify(sandbox.container, request);
  const outcome = { verifiedIn: 'fresh' as const, ...outcomeOf(verification, found, request) };
  if (!allPassed(verification)) return outcome;
  // While verify runs the work, the work must not change the system that grades the next step.
  // Verify may write as much again as the agent.
  const maxBytes = largest + spec.sandbox.disk;
  const knownChanges = () => changesOf(sandbox.imageId, spec, agents, { request, maxBytes });
  const byWork = await changedByWork(sandbox, spec, agents, knownChanges);
  const changed = [...byWork, ...brokenDevices(verification)];
  return {
    ...outcome,
    systemChanges: { kept: listed([]), unexpected: listed(changed) },
    verifyTampered: changed.length > 0,
    ...(await protectedAfter(sandbox.container, spec, agents, { found, maxBytes, knownChanges })),
  };
}

async function inSame(
  spec: TrialSpec,
  { container, kit, signal, restored }: TrialSandbox,
  found: OpenRecord,
  request: VerifyRequest,
): Promise<OpenRecord> {
  // So that verify is not stopped for the files of a harness that exceeded its disk limit.
  if (found.harness?.ended === 'out-of-disk') await container.forgiveDisk(signal);
  const verification = await runVerify(container, request);
  const outcome = { verifiedIn: 'same' as const, ...outcomeOf(verification, found, request) };
  if (verification.ended === 'not-started') return outcome;
  await container.killAll(signal);
  const { kept, unexpected: others } = await systemChanges(container, {
    kit,
    place: spec.verifyPlace,
    earlier: restored?.systemPaths,
    signal,
  });
  const unexpected = [...others, ...brokenDevices(verification)];
  const isRefused = spec.verifyPlace.unexpected === 'fail';
  return {
    ...outcome,
    systemChanges: isRefused
      ? { kept: listed(kept), unexpected: listed(unexpected) }
      : cachesApart({ kept, unexpected }),
    verifyTampered: isRefused && unexpected.length > 0,
  };
}

function outcomeOf(verification: Verification, found: OpenRecord, { timeoutMs }: VerifyRequest): OpenRecord {
  switch (verification.ended) {
    case 'finished':
      return { verifySteps: verification.steps, ...unshielded(verification, found) };
    case 'timed-out':
    case 'out-of-disk': {
      const why =
        verification.ended === 'timed-out'
          ? `after ${timeoutMs / 1000} s`
          : 'because it wrote more than the sandbox allows';
      // Steps that did not end are no verdict: the script itself may take that long, or write as much.
      return {
        verifySteps: verification.steps,
        verdict: 'void',
        cause: taskCause(`verify was stopped ${why}`),
      };
    }
    case 'not-started':
      return { verdict: 'void', cause: taskCause(`verify could not be started: ${verification.message}`) };
  }
}

/**
 * A statically linked shell cannot be shielded. The result only says so, because neither the agent nor the
 * case is at fault.
 */
function unshielded({ shielded }: { shielded: boolean }, { sandboxLacks = [] }: OpenRecord): OpenRecord {
  if (shielded) return {};
  const lacking =
    'a shield for the shells that run verify: a program that verify runs could fake another step’s result';
  return { sandboxLacks: [...sandboxLacks, lacking] };
}

function taskCause(message: string): Cause {
  return { kind: 'task', phase: 'verify', message };
}

function allPassed(verification: Verification): verification is Extract<Verification, { ended: 'finished' }> {
  return verification.ended === 'finished' && verification.steps.every(({ exitCode }) => exitCode === 0);
}

/**
 * If `/dev/null` is gone, a step's output and result change. Layers do not show devices, so the script's
 * guardian checks them.
 */
function brokenDevices(verification: Verification): string[] {
  return verification.ended === 'finished' && !verification.devicesIntact ? ['/dev'] : [];
}

/**
 * What the work changed outside the workspace while verify ran it, except for what verify also changes in an
 * untouched workspace.
 */
async function changedByWork(
  { container }: StartedSandbox,
  spec: TrialSpec,
  { kit, signal }: TrialSandbox,
  knownChanges: () => Promise<OwnChanges>,
): Promise<string[]> {
  await container.killAll(signal);
  const { unexpected } = await systemChanges(container, { kit, place: spec.verifyPlace, signal });
  if (unexpected.length === 0) return [];
  return unexplained(container, unexpected, await knownChanges(), signal);
}

interface VerifiedFiles {
  found: OpenRecord;
  maxBytes: number;
  knownChanges(): Promise<OwnChanges>;
}

/**
 * Protected files that verify's run of the work changed, except if verify makes the same change in an
 * untouched workspace.
 */
async function protectedAfter(
  container: Container,
  spec: TrialSpec,
  sandbox: TrialSandbox,
  { found, maxBytes, knownChanges }: VerifiedFiles,
): Promise<OpenRecord> {
  const { signal } = sandbox;
  if (spec.protected.length === 0 || (found.protectedChanged ?? []).length > 0) return {};
  const before = await protectedBefore(spec, sandbox, signal);
  const after = await protectedState(container, protectionOf(spec), maxBytes, signal);
  const changed = changedFiles(before, after);
  if (changed.length === 0) return {};
  const own = await knownChanges();
  const left = changed.filter((path) => !isDeepStrictEqual(after.get(path), own.protected.get(path)));
  return { protectedChanged: left };
}

/**
 * What verify changes by itself, in the workspace that prepare left. Determined once for all trials of an
 * image.
 */
function changesOf(
  imageId: string,
  spec: TrialSpec,
  { kit, parts, services, signal }: TrialSandbox,
  { request, maxBytes }: { request: VerifyRequest; maxBytes: number },
): Promise<OwnChanges> {
  const what = JSON.stringify([imageId, request.script, request.env, spec.protected, spec.verifyPlace]);
  const key = createHash('sha256').update(what).digest('hex');
  return parts.sandboxes.ownChanges.of(key, signal, async () => {
    using fresh = new FreshSandbox({ spec, parts, signal, services });
    const untouched = await fresh.container();
    const existing = await existingPaths(untouched, signal);
    await runVerify(untouched, request);
    await untouched.killAll(signal);
    const { unexpected } = await systemChanges(untouched, { kit, place: spec.verifyPlace, signal });
    const caches = unexpected.filter(isCache).map((path) => [path, ''] as const);
    const others = unexpected.filter((path) => !isCache(path));
    const system = new Map([...caches, ...(await contentsOf(untouched, others, signal))]);
    const files = await protectedState(untouched, protectionOf(spec), maxBytes, signal);
    return { system, existing, protected: files };
  });
}
