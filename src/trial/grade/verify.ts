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
import { type Found, FreshSandbox, type Phase, type PhaseInput } from '../phase.ts';
import { gradingEnvironment } from '../prepare/environment.ts';
import type { StartedSandbox } from '../prepare/started-sandbox.ts';

/** What verify finds in a case that has none. */
const nothingToRun: Found = { verifySteps: [] };

/** Runs the case's verify steps, in a fresh sandbox unless the case sets `in: same`. */
export const verify: Phase = {
  name: 'verify',
  idle: ({ spec }) => (spec.verify === undefined ? nothingToRun : undefined),
  run,
};

/**
 * Python writes no bytecode, which would be an unintended change of the system. It also reads no bytecode
 * beside a source file, because that could be a program other than its source, protected or not.
 */
const withoutBytecode = { PYTHONDONTWRITEBYTECODE: '1', PYTHONPYCACHEPREFIX: '/proc/no-bytecode' };

/** The request that runs the case's verify. Undefined if the case has none. */
export function verifyRequest({
  spec,
  container,
  parts,
  signal,
}: Pick<PhaseInput, 'spec' | 'container' | 'parts' | 'signal'>): VerifyRequest | undefined {
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

async function run(input: PhaseInput): Promise<Found> {
  const request = verifyRequest(input);
  if (!request) return nothingToRun;
  return input.spec.verifyPlace.in === 'same' ? inSame(input, request) : inFresh(input, request);
}

async function inFresh(input: PhaseInput, request: VerifyRequest): Promise<Found> {
  const { spec, container, signal, sandboxes, found } = input;
  const sandbox = await sandboxes.verify.sandbox();
  const copied = await copyWorkspace(container, sandbox.container, {
    maxBytes: await largestWorkspace(input),
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
  const outcome = { verifiedIn: 'fresh' as const, ...outcomeOf(verification, input, request) };
  if (!allPassed(verification)) return outcome;
  // While verify runs the work, the work must not change the system that grades the next step.
  const byWork = await changedByWork(sandbox, input, request);
  const changed = [...byWork, ...brokenDevices(verification)];
  return {
    ...outcome,
    systemChanges: { kept: listed([]), unexpected: listed(changed) },
    verifyTampered: changed.length > 0,
    ...(await protectedAfter(sandbox, input, request)),
  };
}

async function inSame(input: PhaseInput, request: VerifyRequest): Promise<Found> {
  const { container, kit, spec, signal, restored } = input;
  // So that verify is not stopped for the files of a harness that exceeded its disk limit.
  if (input.found.harness?.ended === 'out-of-disk') await container.forgiveDisk(signal);
  const verification = await runVerify(container, request);
  const outcome = { verifiedIn: 'same' as const, ...outcomeOf(verification, input, request) };
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

function outcomeOf(verification: Verification, { found }: PhaseInput, { timeoutMs }: VerifyRequest): Found {
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
function unshielded({ shielded }: { shielded: boolean }, { sandboxLacks = [] }: Found): Found {
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
  { container, imageId }: StartedSandbox,
  input: PhaseInput,
  request: VerifyRequest,
): Promise<string[]> {
  const { spec, kit, signal } = input;
  await container.killAll(signal);
  const place = spec.verifyPlace;
  const { unexpected } = await systemChanges(container, { kit, place, signal });
  if (unexpected.length === 0) return [];
  const own = await knownChanges(imageId, input, request);
  return unexplained(container, unexpected, own, signal);
}

/** What verify changes by itself, in the workspace that prepare left. */
async function ownChanges(input: PhaseInput, request: VerifyRequest): Promise<OwnChanges> {
  const { spec, kit, signal } = input;
  using fresh = new FreshSandbox(input);
  const untouched: Container = await fresh.container();
  const existing = await existingPaths(untouched, signal);
  await runVerify(untouched, request);
  await untouched.killAll(signal);
  const { unexpected } = await systemChanges(untouched, { kit, place: spec.verifyPlace, signal });
  const caches = unexpected.filter(isCache).map((path) => [path, ''] as const);
  const others = unexpected.filter((path) => !isCache(path));
  const system = new Map([...caches, ...(await contentsOf(untouched, others, signal))]);
  const files = await protectedState(untouched, protectionOf(spec), await largestAfterVerify(input), signal);
  return { system, existing, protected: files };
}

/**
 * Protected files that verify's run of the work changed, except if verify makes the same change in an
 * untouched workspace.
 */
async function protectedAfter(
  { container, imageId }: StartedSandbox,
  input: PhaseInput,
  request: VerifyRequest,
): Promise<Found> {
  const { spec, found, signal } = input;
  if (spec.protected.length === 0 || (found.protectedChanged ?? []).length > 0) return {};
  const before = await protectedBefore(input, signal);
  const after = await protectedState(container, protectionOf(spec), await largestAfterVerify(input), signal);
  const changed = changedFiles(before, after);
  if (changed.length === 0) return {};
  const own = await knownChanges(imageId, input, request);
  const left = changed.filter((path) => !isDeepStrictEqual(after.get(path), own.protected.get(path)));
  return { protectedChanged: left };
}

/** Verify may write as much again as the agent. */
async function largestAfterVerify(input: PhaseInput): Promise<number> {
  return (await largestWorkspace(input)) + input.spec.sandbox.disk;
}

/** What verify changes by itself, determined once for all trials of an image. */
function knownChanges(imageId: string, input: PhaseInput, request: VerifyRequest): Promise<OwnChanges> {
  const { spec, parts } = input;
  const what = JSON.stringify([imageId, request.script, request.env, spec.protected, spec.verifyPlace]);
  const key = createHash('sha256').update(what).digest('hex');
  return parts.sandboxes.ownChanges.of(key, input.signal, () => ownChanges(input, request));
}
