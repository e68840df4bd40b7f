import { OffsiteError } from '../base/offsite-error.ts';
import { noEnvironment } from '../suite/environment.ts';
import { promptOf, type SuitePlan } from '../suite/plan.ts';

/** The version of the stored form. A plan of another version is refused. */
export const planFormat = 1;

/**
 * A plan as JSON, as the ledger keeps it. It suffices to continue the batch without the suite's files. It
 * names the environment variables that hold keys, never their values.
 */
export function storedPlan(plan: SuitePlan): unknown {
  const { cases, variants } = plan;
  const local = cases.map((one) => ({ ...one, local: withFiles(one.local, stored) }));
  return {
    version: planFormat,
    prompt: promptOf(plan) ?? '',
    plan: { ...plan, variants: withFiles(variants, stored), cases: local },
  };
}

/** Reads what {@link storedPlan} returned. Throws `PLAN_UNREADABLE` for a plan of another version. */
export function readPlan(json: unknown): SuitePlan {
  const { version, prompt, plan } = json as { version: number; prompt: string; plan: SuitePlan };
  if (version !== planFormat) {
    throw new OffsiteError(
      `the stored plan has version ${version}; this Offsite reads version ${planFormat}`,
      {
        code: 'PLAN_UNREADABLE',
        kind: 'input',
        hint: 'Resume the batch with the Offsite that started it, or run the suite again.',
      },
    );
  }
  const cases = plan.cases.map(({ request, local }) => {
    // A plan that an older Offsite stored has no environments.
    return {
      request,
      local: withFiles({ ...local, environment: local.environment ?? noEnvironment }, placed),
    };
  });
  // A plan that an older Offsite stored may still name the prompt at the service.
  const suite =
    prompt === '' ? plan.suite : { ...plan.suite, prompt: { kind: 'text' as const, text: prompt } };
  return { ...plan, suite, variants: withFiles(plan.variants, placed), cases };
}

/** A part of a plan with each entry of its lists `files` in another form, however deep they are. */
function withFiles<Part>(part: Part, change: (file: File) => File): Part {
  if (Array.isArray(part)) return part.map((one) => withFiles(one, change)) as Part;
  if (typeof part !== 'object' || part === null) return part;
  const members = Object.entries(part).map(([name, value]) => {
    const isFiles = name === 'files' && Array.isArray(value);
    return [name, isFiles ? value.map(change) : withFiles(value, change)];
  });
  return Object.fromEntries(members) as Part;
}

/** A file of a plan has its content, a stored one its base64. Links and folders have neither. */
type File = { content?: Buffer; base64?: string };

function stored({ content, ...file }: File): File {
  return content === undefined ? file : { ...file, base64: content.toString('base64') };
}

function placed({ base64, ...file }: File): File {
  return base64 === undefined ? file : { ...file, content: Buffer.from(base64, 'base64') };
}
