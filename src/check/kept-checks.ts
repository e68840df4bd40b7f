import { createHash, hash, randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Context } from '../api/context.ts';
import { makeFolder } from '../base/byte-store.ts';
import { parseCheckedJson } from '../base/parse-json.ts';
import type { Engine } from '../engine/engine.ts';
import { openDataFolder } from '../ledger/data-folder.ts';
import type { Redactor } from '../redaction/redactor.ts';
import { usedImages } from '../suite/dockerfile.ts';
import type { CaseEnvironment } from '../suite/environment.ts';
import { type ModelConfig, whereOf } from '../suite/model-config.ts';
import {
  environmentContent,
  type SuitePlan,
  stepsContent,
  testsContent,
  testsInContent,
} from '../suite/plan.ts';
import { type Printable, text } from '../text/printable.ts';
import { passedEnvironment } from '../trial/prepare/environment.ts';
import type { TrialSpec } from '../trial/spec.ts';
import { CheckedState, isUndecided, namesText, type StateToCheck, statesOf } from './checked-state.ts';

export interface KeptChecksOptions {
  redactor: Redactor;
  /** The engine's id of an image; undefined if it does not have it. */
  imageId(name: string): Promise<string | undefined>;
  /** What else decides a result: variables of the host, certificates, models that judge. */
  settings: unknown;
  /** Whether to ignore the results of earlier checks. */
  again: boolean;
  /** Epoch milliseconds. */
  now: number;
}

/** How long a result is kept, in milliseconds. */
const keptFor = 90 * 24 * 3_600_000;

/**
 * What earlier checks found, so that a check that was stopped can continue. Each result is a file of the data
 * folder, under the hash of all that decides it: the case, its grading, the images, the settings.
 */
export class KeptChecks {
  readonly #folder: string;
  readonly #options: KeptChecksOptions;
  readonly #images = new Map<string, Promise<string | undefined>>();

  constructor(dataFolder: string, options: KeptChecksOptions) {
    openDataFolder(dataFolder);
    this.#folder = join(dataFolder, 'checks');
    this.#options = options;
    makeFolder(this.#folder, 0o700);
    for (const name of readdirSync(this.#folder)) this.#removeOld(join(this.#folder, name));
  }

  async keyOf({ state, spec }: StateToCheck, repeat: number): Promise<string> {
    const images = await Promise.all(imagesOf(spec).map((name) => this.#imageId(name)));
    return hashOf([version, state, repeat, images, ownParts(spec), this.#options.settings]);
  }

  /** The result under a key; undefined if there is none. */
  find(key: string): CheckedState | undefined {
    if (this.#options.again) return undefined;
    try {
      const read = CheckedState.safeParse(parseCheckedJson(readFileSync(this.#fileOf(key), 'utf8')));
      return read.success ? { ...read.data, kept: true } : undefined;
    } catch {
      return undefined; // There is none, or it is damaged: the case is graded again.
    }
  }

  /**
   * Keeps a result. One without a verdict may be the fault of the machine or the network, and is not kept,
   * unless a control showed that it is the grading's, or an agent could find what grades the case.
   */
  keep(key: string, state: CheckedState): void {
    const lasts = state.asExpected || state.causeKind === 'grading' || state.givesAway === true;
    if (state.verdicts.includes('void') && !lasts) return;
    const { redactor } = this.#options;
    const file = this.#fileOf(key);
    const fresh = `${file}.${randomUUID()}`;
    writeFileSync(fresh, redactor.json(state), { mode: 0o600 });
    renameSync(fresh, file);
  }

  /** Keeps what the last check of a state found, whatever its sandbox was and however often it graded. */
  keepLast(of: StateToCheck, checked: CheckedState): void {
    this.keep(lastKeyOf(of), checked);
  }

  /** What the last check of a state found; undefined if it was never checked as it is now. */
  findLast(of: StateToCheck): CheckedState | undefined {
    return this.find(lastKeyOf(of));
  }

  #imageId(name: string): Promise<string | undefined> {
    const known = this.#images.get(name) ?? this.#options.imageId(name);
    this.#images.set(name, known);
    return known;
  }

  #fileOf(key: string): string {
    return join(this.#folder, `${key}.json`);
  }

  #removeOld(file: string): void {
    const found = statSync(file, { throwIfNoEntry: false });
    if (found && found.mtimeMs < this.#options.now - keptFor) rmSync(file, { force: true });
  }
}

/** Increase this when grading changes, or the form of the results that are kept. */
const version = 8;

function lastKeyOf({ state, spec }: StateToCheck): string {
  const testsIn = spec.testsIn && environmentContent(spec.testsIn.environment);
  return hashOf([version, 'last', state, { ...ownParts(spec), sandbox: undefined, testsIn }]);
}

/** The images that the environments of the agent, of the services and of the tests begin with. */
function imagesOf({ sandbox, environment, tests, steps }: TrialSpec): string[] {
  const ofTests = [tests, ...(steps?.list.map((step) => step.tests) ?? [])];
  const others = ofTests.flatMap((each) => each?.fresh?.environment ?? []);
  const services = [environment, ...others].flatMap((each) => each.services ?? []);
  const all = [imagesIn(environment) ?? [sandbox.image], ...[...others, ...services].map(imagesIn)];
  return [...new Set(all.flatMap((names) => names ?? []))];
}

function imagesIn({ build, image }: Pick<CaseEnvironment, 'build' | 'image'>): string[] | undefined {
  if (!build) return image && [image.mappedTo ?? image.name];
  const { dockerfile, args, images } = build;
  return usedImages(dockerfile, args).map(({ name }) => images[name] ?? name);
}

/**
 * The parts of a trial that decide its result. Places in files, and the suite file itself, are left out,
 * because any edit of the suite changes them. So are names, which `run` and `check` may give differently.
 */
function ownParts({ batchId, runId, taskIndex, ordinal, variant, ...spec }: TrialSpec): object {
  const { environment, tests, steps, testsIn, profile, answers = [] } = spec;
  return {
    ...spec,
    profile: { ...profile, name: undefined },
    answers: answers.filter(({ ofSuite }) => !ofSuite),
    environment: environmentContent(environment),
    tests: tests && testsContent(tests),
    steps: steps && stepsContent(steps),
    testsIn: testsIn && testsInContent(testsIn),
  };
}

/** The SHA-256 of a value that contains the bytes of files. The order of members does not matter. */
function hashOf(value: unknown): string {
  const hash = createHash('sha256');
  const add = (each: unknown): void => {
    if (each instanceof Uint8Array) {
      hash.update(`${each.length}:`).update(each);
    } else if (Array.isArray(each)) {
      hash.update(`[${each.length}`);
      for (const member of each) add(member);
    } else if (each !== null && typeof each === 'object') {
      const entries = Object.entries(each).filter(([, member]) => member !== undefined);
      hash.update(`{${entries.length}`);
      for (const [name, member] of entries.toSorted(([one], [other]) => (one < other ? -1 : 1))) {
        hash.update(JSON.stringify(name));
        add(member);
      }
    } else hash.update(JSON.stringify(each) ?? 'undefined');
  };
  add(value);
  return hash.digest('hex');
}

/** What earlier checks with the same variables, certificates and judges found. */
export async function keptChecks(
  context: Context,
  plan: SuitePlan,
  { engine, again, signal }: { engine: Engine; again: boolean; signal: AbortSignal },
): Promise<KeptChecks> {
  const { dataFolder, redactor, config, host, clock } = context;
  const { sandbox } = plan.variants[0] ?? {};
  if (!sandbox) throw new Error('a suite has at least one variant');
  const judges = plan.judges.map((name) => [config.models[name], hashOfAnswers(config.models[name])]);
  return new KeptChecks(dataFolder, {
    redactor,
    again,
    now: clock.now(),
    settings: [passedEnvironment(sandbox, host), await context.certificates(), judges],
    imageId: async (name) => (await engine.findImage(name, signal))?.id,
  });
}

/** The hash of the file that a model answers from. With a changed file, the judge is another one. */
function hashOfAnswers(model: ModelConfig | undefined): string | undefined {
  if (!model || 'baseUrl' in model) return undefined;
  return hash('sha256', readFileSync(whereOf(model)));
}

/** What to say before a run of cases that the last check of the same cases called not sound. */
export async function unsoundText(
  context: Context,
  plan: SuitePlan,
  given: { engine: Engine; signal: AbortSignal },
): Promise<Printable | undefined> {
  if (!existsSync(join(context.dataFolder, 'checks'))) return undefined;
  const kept = await keptChecks(context, plan, { ...given, again: false });
  const unsound: string[] = [];
  for (const planned of plan.cases) {
    const states = statesOf(plan, planned).flatMap((state) => kept.findLast(state) ?? []);
    if (states.some((state) => !state.asExpected && !isUndecided(state))) unsound.push(planned.request.id);
  }
  if (unsound.length === 0) return undefined;
  return text`the last check called these cases not sound: ${namesText(unsound)}; \`offsite check\` says why`;
}
