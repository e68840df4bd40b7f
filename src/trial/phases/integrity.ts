import { randomBytes } from 'node:crypto';
import { type IntegrityFinding, protectedChanges } from '../../validate/integrity.ts';
import { tampering } from '../../validate/tampering/tampering.ts';
import { runVerify } from '../../validate/verify.ts';
import { FreshSandbox } from '../control.ts';
import { places } from '../places.ts';
import type { PhaseInput } from './phase.ts';
import { verifyRequest } from './verify.ts';

/** Where a harness may write what it likes: nothing there is run unless somebody names it. */
const harnessPlaces = [
  places.workspace,
  places.own,
  '/tmp',
  '/var/tmp',
  '/var/log',
  '/var/cache',
  '/run',
  '/dev',
];

/** What the case or the grading itself relies on, and whether the harness left it alone. In the sandbox nothing may run. */
export async function integrityOf(input: PhaseInput, fresh: FreshSandbox): Promise<IntegrityFinding[]> {
  const { spec, found } = input;
  const findings: IntegrityFinding[] = [];
  if (spec.protected.length > 0) {
    const changed = protectedChanges(spec.protected, found.filesChanged ?? []);
    findings.push({ kind: 'protected', name: 'protected files', changed });
  }
  if (!gradesInPlace(input)) return findings;
  if (await wroteNothing(input)) return findings;
  const changed = (await isFolder(input)) ? await tamperedWith(input, fresh) : [places.workspace];
  if (changed.length > 0) findings.push({ kind: 'tampering', name: "the sandbox's programs", changed });
  return findings;
}

/**
 * Whether the sandbox wrote nothing, in which case there is nothing to look into: every file that was made, changed or replaced lies in the
 * container's own layer with its whole size, and the engine lists those of no size. Two round trips. Bytes that the workspace accounts for
 * are no proof: a program may be replaced by a second name of a file there.
 */
async function wroteNothing({ container, signal }: PhaseInput): Promise<boolean> {
  const [bytes, changes] = await Promise.all([container.writtenBytes(signal), container.changes()]);
  return (
    bytes === 0 && changes.every(({ path, kind }) => isAllowed(path) || (kind === 'modified' && isWay(path)))
  );
}

function isAllowed(path: string): boolean {
  return harnessPlaces.some((place) => path.startsWith(`${place}/`));
}

/** A folder on the way to such a place, which the engine names for what changed in it. */
function isWay(path: string): boolean {
  return harnessPlaces.some((place) => place === path || place.startsWith(`${path}/`));
}

/** A link in the workspace's place would have something else looked at than what was collected. */
async function isFolder({ container, signal }: PhaseInput): Promise<boolean> {
  for await (const { type } of container.archive(places.workspace, signal)) return type === 'folder';
  return false;
}

/** Whether something that ran in the harness's own sandbox speaks for the work. */
function gradesInPlace({ spec, found }: PhaseInput): boolean {
  if ((found.verifySteps ?? []).some(({ exitCode }) => exitCode !== 0)) return false;
  return spec.verify !== undefined || spec.validator?.runsIn === 'same';
}

async function tamperedWith(input: PhaseInput, fresh: FreshSandbox): Promise<string[]> {
  const { container, signal } = input;
  const pristine = await fresh.container();
  const request = () => ({
    fresh: pristine,
    folder: `/offsite-${randomBytes(8).toString('hex')}`,
    except: harnessPlaces,
    old: places.prompt,
    signal,
  });
  const changed = await tampering({ ...request(), container });
  if (changed.length === 0) return changed;
  // Verify may itself install something. What it does where nothing of the harness's is, the harness did not do.
  using control = new FreshSandbox(input);
  const untouched = await control.container();
  const verify = verifyRequest(input);
  if (verify) await runVerify(untouched, verify);
  await untouched.killAll(signal);
  const own = new Set(await tampering({ ...request(), container: untouched }));
  return changed.filter((path) => !own.has(path));
}
