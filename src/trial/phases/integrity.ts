import { type IntegrityFinding, protectedChanges } from '../../validate/integrity.ts';
import { tampering } from '../../validate/tampering/tampering.ts';
import { runVerify } from '../../validate/verify.ts';
import { FreshSandbox } from '../control.ts';
import { places } from '../places.ts';
import { gradesInPlace } from '../spec.ts';
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
export async function integrityOf(input: PhaseInput): Promise<IntegrityFinding[]> {
  const { spec, found } = input;
  const findings: IntegrityFinding[] = [];
  if (spec.protected.length > 0) {
    const changed = protectedChanges(spec.protected, found.filesChanged ?? []);
    findings.push({ kind: 'protected', name: 'protected files', changed });
  }
  if (!gradesInPlace(spec) || (found.verifySteps ?? []).some(({ exitCode }) => exitCode !== 0))
    return findings;
  const changed = (await isWorkspaceFolder(input)) ? await tamperedWith(input) : [places.workspace];
  if (changed.length > 0) findings.push({ kind: 'tampering', name: "the sandbox's programs", changed });
  return findings;
}

/** A link in the workspace's place would have something else looked at than what was collected. */
async function isWorkspaceFolder({ container, signal }: PhaseInput): Promise<boolean> {
  return (await container.kindOf(places.workspace, signal)) === 'folder';
}

async function tamperedWith(input: PhaseInput): Promise<string[]> {
  const { container, kit, signal } = input;
  using control = new FreshSandbox(input);
  const request = { kit, fresh: () => control.container(), except: harnessPlaces, signal };
  const changed = await tampering({ ...request, container });
  if (changed.length === 0) return changed;
  // Verify may itself install something. What it does where nothing of the harness's is, the harness did not do.
  const untouched = await control.container();
  const verify = verifyRequest(input);
  if (verify) await runVerify(untouched, verify);
  await untouched.killAll(signal);
  const own = new Set(await tampering({ ...request, container: untouched }));
  return changed.filter((path) => !own.has(path));
}
