import { OffsiteError } from '../base/offsite-error.ts';
import type { CaseStep } from '../suite/case-steps.ts';
import type { CaseTests } from '../suite/case-tests.ts';
import { type CaseEnvironment, noEnvironment } from '../suite/environment.ts';
import type { PlacedFile } from '../suite/environment-parts.ts';
import type { SuitePlan } from '../suite/plan.ts';

/** The version of the stored form. A plan of another version is refused. */
export const planFormat = 1;

/**
 * A planned batch with its prompt's text, as the ledger keeps it. It suffices to continue the batch without
 * the suite's files.
 */
export interface KnownPlan {
  plan: SuitePlan;
  prompt: string;
}

/** The plan as JSON. It names the environment variables that hold keys, never their values. */
export function storedPlan({ plan, prompt }: KnownPlan): unknown {
  const variants = plan.variants.map((variant) => ({
    ...variant,
    profile: {
      ...variant.profile,
      files: variant.profile.files.map(({ content, ...file }) => ({
        ...file,
        base64: content.toString('base64'),
      })),
    },
  }));
  const cases = plan.cases.map(({ request, local }) => {
    const { environment, tests, oracle, steps } = local;
    return {
      request,
      local: {
        ...local,
        environment: environmentWith(withStored, environment),
        ...(tests && { tests: testsWith(withStored, tests) }),
        ...(oracle && { oracle: withStored(oracle) }),
        ...(steps && { steps: { ...steps, list: steps.list.map((step) => withFiles(step, withStored)) } }),
      },
    };
  });
  return { version: planFormat, prompt, plan: { ...plan, variants, cases } };
}

/** Reads what {@link storedPlan} returned. Throws `PLAN_UNREADABLE` for a plan of another version. */
export function readPlan(stored: unknown): KnownPlan {
  const kept = stored as { version: number; prompt: string; plan: SuitePlan };
  if (kept.version !== planFormat) {
    throw new OffsiteError(
      `the stored plan has version ${kept.version}; this Offsite reads version ${planFormat}`,
      {
        code: 'PLAN_UNREADABLE',
        kind: 'input',
        hint: 'Resume the batch with the Offsite that started it, or run the suite again.',
      },
    );
  }
  const variants = kept.plan.variants.map((variant) => ({
    ...variant,
    profile: {
      ...variant.profile,
      files: (variant.profile.files as unknown as { base64: string; path: string; mode?: number }[]).map(
        ({ base64, ...file }) => ({ ...file, content: Buffer.from(base64, 'base64') }),
      ),
    },
  }));
  const cases = kept.plan.cases.map(({ request, local }) => {
    // A plan that an older Offsite stored has no environments.
    const { environment = noEnvironment, tests, oracle, steps } = local;
    return {
      request,
      local: {
        ...local,
        environment: environmentWith(withPlaced, environment),
        ...(tests && { tests: testsWith(withPlaced, tests) }),
        ...(oracle && { oracle: withPlaced(oracle) }),
        ...(steps && { steps: { ...steps, list: steps.list.map((step) => withFiles(step, withPlaced)) } }),
      },
    };
  });
  return { prompt: kept.prompt, plan: { ...kept.plan, variants, cases } };
}

type Holder = { files?: PlacedFile[] | undefined };

/** A step with its files, and those of its tests and its oracle, in another form. */
function withFiles(step: CaseStep, change: <Of extends Holder>(holder: Of) => Of): CaseStep {
  const { tests, oracle } = step;
  return { ...change(step), tests: testsWith(change, tests), ...(oracle && { oracle: change(oracle) }) };
}

/** An environment whose files, and those of its services, are in another form. */
function environmentWith(
  change: <Of extends Holder>(holder: Of) => Of,
  environment: CaseEnvironment,
): CaseEnvironment {
  const { services } = environment;
  return { ...change(environment), ...(services && { services: services.map(change) }) };
}

/** Tests whose files, and those of their environment, are in another form. */
function testsWith(change: <Of extends Holder>(holder: Of) => Of, tests: CaseTests): CaseTests {
  const { fresh } = tests;
  const environment = fresh?.environment && environmentWith(change, fresh.environment);
  return { ...change(tests), ...(fresh && { fresh: { ...fresh, environment } }) };
}

/** With the contents of its files as texts. */
function withStored<Of extends Holder>(holder: Of): Of {
  const { files } = holder;
  return { ...holder, ...(files && { files: files.map(stored) }) };
}

function withPlaced<Of extends Holder>(holder: Of): Of {
  const files = holder.files as StoredFile[] | undefined;
  return { ...holder, ...(files && { files: files.map(placed) }) };
}

type StoredFile = { path: string; base64?: string };

function stored(file: PlacedFile): StoredFile {
  if (!('content' in file)) return file;
  const { content, ...rest } = file;
  return { ...rest, base64: content.toString('base64') };
}

function placed({ base64, ...file }: StoredFile): PlacedFile {
  const content = base64 === undefined ? {} : { content: Buffer.from(base64, 'base64') };
  return { ...file, ...content } as PlacedFile;
}
