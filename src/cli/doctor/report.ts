import { EngineUnreachable, type TriedEngine } from '../../engine/connection/unreachable.ts';
import type { Engine } from '../../engine/engine.ts';
import type { Capabilities } from '../../engine/port/capabilities.ts';
import { lines, ours, type Printable, stack, styled, text, type Value } from '../../text/printable.ts';
import { byteSize } from './byte-size.ts';
import type { Prerequisite } from './check.ts';
import { type ConformanceReport, printedConformance } from './deep/conformance.ts';
import { printedHostile } from './deep/printed.ts';
import type { HostileReport } from './deep/run-hostile.ts';
import type { Examined } from './examine.ts';

/** What `offsite doctor` found, in the form of its JSON. */
export interface DoctorReport {
  /** Nothing failed; there may be warnings. */
  ready: boolean;
  /** The engine; absent if none was reached. Then `tried` lists the addresses that were tried. */
  engine?: { address: string; capabilities: Capabilities };
  tried?: readonly TriedEngine[];
  checks: Examined[];
  /**
   * Whether the engine does what Offsite relies on; absent unless asked for, and if it could not be checked.
   */
  conformance?: ConformanceReport;
  /** The results of hostile agents on this engine; absent unless asked for, and if there is no engine. */
  hostile?: HostileReport;
}

/** What `--deep` adds. */
export type DeepReports = Pick<DoctorReport, 'conformance' | 'hostile'>;

export function doctorReport(
  engine: Prerequisite<Engine>,
  examined: Examined[],
  { conformance, hostile }: DeepReports = {},
): DoctorReport {
  return {
    ready:
      examined.every(({ state }) => state !== 'fail') &&
      conformance?.held !== false &&
      hostile?.held !== false,
    ...(engine.got && { engine: { address: engine.value.address, capabilities: engine.value.capabilities } }),
    ...(!engine.got && engine.error instanceof EngineUnreachable && { tried: engine.error.tried }),
    checks: examined,
    ...(conformance && { conformance }),
    ...(hostile && { hostile }),
  };
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
  const { ready, engine, checks, conformance, hostile } = report;
  const width = Math.max(...checks.map(({ name }) => name.length));
  const indent = ours(' '.repeat(6 + width + 2));
  const printed = checks.flatMap((check) => [
    text`${marks[check.state]}  ${ours(check.name.padEnd(width))}  ${lines(check.found)}`,
    ...('fix' in check ? [text`${indent}${styled('bold', lines(check.fix))}`] : []),
  ]);
  const warnings = checks.filter(({ state }) => state === 'warn').length;
  const failures = checks.filter(({ state }) => state === 'fail').length;
  const wrong = [
    ...(failures > 0 ? [`${failures} of ${checks.length} checks failed`] : []),
    ...(conformance?.held === false ? ['the engine does not do all that trials rely on'] : []),
    ...(hostile?.held === false ? ['not every hostile agent was held'] : []),
  ];
  const closing = ready
    ? `Ready to run trials${warnings > 0 ? `; warnings: ${warnings}` : ''}.`
    : `Not ready: ${wrong.join('; ')}.`;
  return stack([
    ...(engine ? [printedEngine(engine), ''] : []),
    ...printed,
    ...(conformance ? ['', printedConformance(conformance)] : []),
    ...(hostile ? ['', printedHostile(hostile)] : []),
    '',
    ours(closing),
  ]);
}

const ofPodman =
  'filters of system calls are kept in the volume offsite-filters, the oldest snapshots are removed first, ' +
  "and kills for lack of memory are read from the kernel's counters";

const ofContainerd = 'changes of a sandbox are listed by Offsite itself, and snapshots removed by age';

function printedEngine({
  address,
  capabilities: engine,
}: {
  address: string;
  capabilities: Capabilities;
}): Printable {
  const { security } = engine;
  const yesNo = (value: boolean) => (value ? 'yes' : 'no');
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
      Object.entries({ seccomp: security.seccomp, AppArmor: security.apparmor, SELinux: security.selinux })
        .map(([name, value]) => `${name}: ${yesNo(value)}`)
        .join('; '),
    ],
    ...engine.warnings.map((warning): [string, Value] => ['it warns', lines(warning)]),
  ];
  return stack(facts.map(([name, value]) => text`${ours(name.padEnd(17))}${value}`));
}
