import { EngineUnreachable, type TriedEngine } from '../engine/connection/connect.ts';
import type { Engine } from '../engine/engine.ts';
import type { Capabilities } from '../engine/port/engine-port.ts';
import { lines, ours, type Printable, present, stack, styled, text, type Value } from '../text/printable.ts';
import { printedConformance } from './deep/conformance.ts';
import type { DeepReports, HostileNotRun } from './deep/look-deep.ts';
import { printedHostile } from './deep/outcome.ts';
import { byteSize, type Examined, type Prerequisite } from './examine.ts';

/** What `offsite doctor` found, in the form of its JSON. */
export interface DoctorReport {
  /** Nothing failed; there may be warnings. */
  ready: boolean;
  /** The engine; absent if none was reached. Then `tried` lists the addresses that were tried. */
  engine?: { address: string; capabilities: Capabilities };
  tried?: readonly TriedEngine[];
  checks: Examined[];
  /**
   * Whether the engine does what Offsite relies on, for each runtime that sandboxes use; absent unless asked
   * for, and if there is no engine.
   */
  conformance?: DeepReports['conformance'];
  /** The results of hostile agents, likewise. */
  hostile?: DeepReports['hostile'];
}

export function doctorReport(
  engine: Prerequisite<Engine>,
  examined: Examined[],
  deep?: DeepReports,
): DoctorReport {
  return {
    ready: examined.every(({ state }) => state !== 'fail') && (deep === undefined || allHeld(deep)),
    ...(engine.got && { engine: { address: engine.value.address, capabilities: engine.value.capabilities } }),
    ...(!engine.got && engine.error instanceof EngineUnreachable && { tried: engine.error.tried }),
    checks: examined,
    ...deep,
  };
}

/** Whether nothing failed of what `--deep` looked at. */
function allHeld({ conformance, hostile }: DeepReports): boolean {
  return [...conformance, ...hostile].every(({ held }) => held);
}

const marks = {
  ok: styled('green', ours('ok  ')),
  warn: styled('yellow', ours('warn')),
  fail: styled('red', ours('FAIL')),
  skipped: styled('dim', ours('–   ')),
} as const;

/**
 * The report for people: facts about the engine, then a line for each check, with what to do about problems.
 */
export function printedReport(report: DoctorReport): Printable {
  const { ready, engine, checks, conformance = [], hostile = [] } = report;
  const width = Math.max(...checks.map(({ name }) => name.length));
  const indent = ours(' '.repeat(6 + width + 2));
  const printed = checks.flatMap((check) => [
    text`${marks[check.state]}  ${check.name.padEnd(width)}  ${lines(check.found)}`,
    ...('fix' in check ? [text`${indent}${styled('bold', lines(check.fix))}`] : []),
  ]);
  const warnings = checks.filter(({ state }) => state === 'warn').length;
  const failures = checks.filter(({ state }) => state === 'fail').length;
  const wrong = present([
    failures > 0 && `${failures} of ${checks.length} checks failed`,
    conformance.some(({ held }) => !held) && 'the engine does not do all that trials rely on',
    hostile.some((seen) => !('notRun' in seen || seen.held)) && 'not every hostile agent was held',
    hostile.some((seen) => 'notRun' in seen) && 'hostile agents were not run',
  ]);
  const closing = ready
    ? `Ready to run trials${warnings > 0 ? `; warnings: ${warnings}` : ''}.`
    : `Not ready: ${wrong.join('; ')}.`;
  return stack([
    ...(engine ? [printedEngine(engine), ''] : []),
    ...printed,
    ...conformance.flatMap((seen) => ['', printedConformance(seen, titled('The engine', seen, conformance))]),
    ...hostile.flatMap((seen) => [
      '',
      ...(hostile.length > 1 ? [titled('Hostile agents', seen, hostile)] : []),
      'notRun' in seen ? printedNotRun(seen) : printedHostile(seen),
    ]),
    '',
    ours(closing),
  ]);
}

/** `The engine:`, and of several reports which runtime this one is about. */
function titled(title: string, { runtime }: { runtime: string }, all: readonly unknown[]): Printable {
  return all.length > 1 ? text`${ours(title)}, with the runtime ${runtime}:` : ours(`${title}:`);
}

function printedNotRun({ notRun, fix }: HostileNotRun): Printable {
  return stack([
    text`${marks.fail}  hostile agents were not run: ${lines(notRun)}`,
    text`      ${styled('bold', lines(fix))}`,
  ]);
}

const ofPodman =
  'filters of system calls are kept in the volume offsite-filters, the oldest snapshots are removed first, ' +
  "kills for lack of memory are read from the kernel's counters, and many thousand small folders may take some " +
  'tens of MiB more than `disk`';

const ofContainerd = 'changes of a sandbox are listed by Offsite itself, and snapshots removed by age';

function printedEngine({ address, capabilities: engine }: NonNullable<DoctorReport['engine']>): Printable {
  const { security } = engine;
  const yesNo = (value: boolean) => (value ? 'yes' : 'no');
  const protections = { seccomp: security.seccomp, AppArmor: security.apparmor, SELinux: security.selinux };
  const facts: [string, Value][] = [
    ['engine', address],
    ['version', `${engine.product} ${engine.serverVersion}, API ${engine.apiVersion}`],
    ['machine', `${engine.os} ${engine.arch}, kernel ${engine.kernel}`],
    ['processors', `${engine.cpus}, ${byteSize(engine.memoryBytes)} of memory`],
    ['runtimes', engine.runtimes.join(', ')],
    ['control groups', `version ${engine.cgroupVersion}`],
    ['storage', `${engine.storageDriver}; disk quotas of its own: ${engine.diskQuota}`],
    [
      'image store',
      engine.imageStore === 'containerd' ? `containerd's: ${ofContainerd}` : "the engine's own",
    ],
    ...(engine.product === 'Podman' ? [['what follows', ours(ofPodman)] as [string, Value]] : []),
    ['user namespaces', `${yesNo(security.userns)}; rootless: ${yesNo(security.rootless)}`],
    [
      'security',
      Object.entries(protections)
        .map(([name, has]) => `${name}: ${yesNo(has)}`)
        .join('; '),
    ],
    ...engine.warnings.map((warning): [string, Value] => ['it warns', lines(warning)]),
  ];
  return stack(facts.map(([name, value]) => text`${ours(name.padEnd(17))}${value}`));
}
