import { statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { inputError, type OffsiteError } from '../base/offsite-error.ts';
import { answersOfSuite } from '../suite/answers.ts';
import type { Config } from '../suite/config-file.ts';
import { type FileIssue, issueIn, printFileIssue } from '../suite/file-issues.ts';
import { type FetchedSources, fetchSources } from '../suite/git/fetch-sources.ts';
import { commitOf } from '../suite/git/run-git.ts';
import { loadSuite, type SuiteOptions } from '../suite/load-suite.ts';
import type { PlannedVariant, SuitePlan } from '../suite/plan.ts';
import { type HarnessOffer, mcpObstacle, plannedVariant } from '../suite/planned-variant.ts';
import { requirePrices } from '../suite/require-prices.ts';
import type { RowTest, TasksSource } from '../suite/tasks-source.ts';
import { selectTasks } from '../tasks/find-tasks.ts';
import { networkObstacles } from '../tasks/list-tasks.ts';
import { type LeftOut, planTasks } from '../tasks/plan-tasks.ts';
import { begunWith, orNearest } from '../text/nearest.ts';
import { type Printable, stack, text } from '../text/printable.ts';
import { plural } from '../text/quantities.ts';
import { askedBy } from '../trial/run/models.ts';
import type { Context } from './context.ts';

/** Who watches the work: receives notes for people, and the beginning and the end of each step. */
export interface Observer {
  note(message: string | Printable): void;
  update(step: { kind: 'step'; title: string; state: 'begins' | 'ends' }): void;
}

/** Does a step of the work, and tells an observer when it begins and ends. */
export async function step<Result>(
  title: string,
  { update }: Pick<Observer, 'update'>,
  work: () => Promise<Result>,
): Promise<Result> {
  update({ kind: 'step', title, state: 'begins' });
  try {
    return await work();
  } finally {
    update({ kind: 'step', title, state: 'ends' });
  }
}

export interface RowOptions {
  image?: string | undefined;
  build?: string | undefined;
  buildArg?: Record<string, string> | undefined;
  testCommand?: string | undefined;
  testParser?: RowTest['parser'] | undefined;
}

export interface TaskOptions
  extends RowOptions,
    Partial<Omit<TasksSource, 'path' | 'threshold' | 'image' | 'build' | 'test'>> {
  tasks?: string | undefined;
  threshold?: number | undefined;
  strictTasks?: true | undefined;
  variant?: string[] | undefined;
  profile?: string | undefined;
  sandbox?: string | undefined;
}

export interface PlannedSuite {
  plan: SuitePlan;
  /** Tasks that were chosen and that cannot run here. */
  leftOut: LeftOut[];
}

export interface PlanningOptions {
  progress: Observer;
  signal: AbortSignal;
  /** Whether only the sandboxes of the variants are used. With --tasks, no variant need be named then. */
  withoutHarness?: boolean;
  /** In place of those of the configuration. */
  models?: Config['models'] | undefined;
}

/** Reads a suite file, or makes a suite of tasks. Throws `BadFile` and `input` errors. */
export async function plannedSuite(
  file: string | undefined,
  options: TaskOptions & { allowOutside?: string[] | undefined },
  context: Context,
  { progress, signal, withoutHarness = false, models }: PlanningOptions,
): Promise<PlannedSuite> {
  const { runners } = context;
  const config = models ? { ...context.config, models } : context.config;
  const reading = suiteOptions(options, context);
  const { except = [], keys } = reading;
  const leftOut: LeftOut[] = [];
  const casesOf: NonNullable<SuiteOptions['planTasks']> = (source) => {
    const planned = planTasks(source, { except, keys, images: config.images });
    leftOut.push(...planned.leftOut);
    return planned.cases;
  };
  const finished = (planned: PlannedSuite) => {
    const asked = withoutHarness ? planned.plan.judges : askedBy(planned.plan);
    // Recorded answers may need no prices.
    if (!models) requirePrices(asked, { ...config, models: context.configured });
    return checked(fitting(planned, withoutHarness ? [] : runners), options);
  };
  const { tasks } = options;
  if ((file === undefined) === (tasks === undefined))
    throw badOption('expected a suite file, or --tasks with a folder', oneOfThem(file));
  if (file !== undefined) {
    refuseTaskOptions(options);
    const sources = await sourcesOf(file, options, context, { progress, signal });
    const given = { ...reading, planTasks: casesOf, sources, unwritten: withoutHarness };
    const read = withVariants(loadSuite(file, config, runners, given), options.variant);
    const plan = { ...read, commit: await commitOf(dirname(file), { env: context.env, signal }) };
    const known = plan.cases.map((one) => ({ id: one.request.id, one }));
    const cases = selectTasks(known, options, 'case').map(({ one }) => one);
    const suiteCases = cases.length < known.length ? known.length : undefined;
    return finished({ plan: { ...plan, cases, suiteCases }, leftOut });
  }
  const path = resolve(tasks ?? '');
  const { variant = withoutHarness ? ['nothing:none'] : [], profile, sandbox = 'local' } = options;
  if (variant.length === 0)
    throw badOption(
      '--tasks needs a variant',
      'Add --variant HARNESS:MODEL, such as --variant codex:sonnet.',
    );
  const harnesses = withoutHarness && !options.variant ? [nothing] : runners;
  const variants = variant.map((name): PlannedVariant => {
    const refuse = (_key: string, message: string): never => {
      throw badOption(`the variant ${name}: ${message}`, 'Choose another variant, or change offsite.yaml.');
    };
    const source = sourceOfVariant(name, { profile, sandbox }, harnesses);
    const planned = plannedVariant(source, { config, harnesses, meetsUser: false, keys }, refuse);
    if (!planned) throw new Error('a variant is planned or refused');
    return planned;
  });
  const { format, include, exclude, limit, seed, threshold } = options;
  const chosen = { path, format, include, exclude, limit, seed, threshold };
  const cases = casesOf({ ...chosen, ...rowSetupOf(options) });
  const id = basename(path) || 'tasks';
  const prompt = { kind: 'text' as const, text: '{{instruction}}' };
  const commit = await commitOf(isFolder(path) ? path : dirname(path), { env: context.env, signal });
  const plan = {
    file: path,
    suite: { id, name: id, prompt },
    commit,
    trials: 1,
    cases,
    variants,
    judges: [],
    answers: answersOfSuite(cases),
  };
  return finished({ plan, leftOut });
}

/** Leaves out the tasks with tool servers or hosts that a variant cannot be given. */
function fitting({ plan, leftOut }: PlannedSuite, harnesses: readonly HarnessOffer[]): PlannedSuite {
  const used = harnesses.filter(({ name }) => plan.variants.some(({ harness }) => harness === name));
  const left: LeftOut[] = [];
  const sandboxes = new Set(plan.variants.map(({ sandbox }) => sandbox));
  const cases = plan.cases.filter((planned) => {
    const { id } = planned.request;
    const { agent, steps } = planned.local;
    const agents = [agent, ...(steps?.list ?? []).map((step) => step.agent)];
    const servers = agents.map((one) => one?.mcpServers ?? {});
    const messages = used.flatMap((harness) => servers.flatMap((each) => mcpObstacle(each, harness) ?? []));
    const reasons: FileIssue[] = [
      ...[...new Set(messages)].map((message) => issueIn(plan.file, message)),
      ...[...sandboxes].flatMap((sandbox) => networkObstacles(planned, sandbox)),
    ];
    if (reasons.length > 0) left.push({ id, state: 'does not run', reasons });
    return reasons.length === 0;
  });
  return { plan: { ...plan, cases }, leftOut: [...leftOut, ...left] };
}

/**
 * A variant of a suite file for `HARNESS:MODEL`, or for `MODEL/HARNESS` as results show it. Throws an `input`
 * error for another text.
 */
export function sourceOfVariant(
  name: string,
  { profile, sandbox }: { profile: string | undefined; sandbox: string },
  harnesses: readonly Pick<HarnessOffer, 'name'>[],
) {
  const isHarness = (word: string | undefined) => harnesses.some((one) => one.name === word);
  const written = /^(?<harness>[^:]+):(?<model>.+)$/s.exec(name)?.groups;
  const shown = /^(?<model>.+)\/(?<harness>[^/]+)$/s.exec(name)?.groups;
  const isShown = isHarness(shown?.harness) && !isHarness(written?.harness);
  const { harness, model } = (isShown ? shown : written) ?? {};
  if (harness === undefined || model === undefined)
    throw badOption(`${name} is not a variant`, 'Expected HARNESS:MODEL, such as codex:sonnet.');
  return { harness, model, sandbox, ...(profile !== undefined && { profile }) };
}

/** A harness that cannot run, for variants of which only the sandbox and the profile are used. */
const nothing = {
  name: 'nothing',
  wires: [],
  continues: false,
  mcp: ['stdio', 'http', 'sse'] as const,
  limits: ['turns'],
};

function checked(planned: PlannedSuite, { strictTasks }: TaskOptions): PlannedSuite {
  const { plan, leftOut } = planned;
  if (leftOut.length > 0 && (strictTasks || plan.cases.length === 0)) {
    const some = plan.cases.length === 0 ? 'none of these tasks can' : 'some of these tasks cannot';
    const reasons = leftOut.slice(0, shown).map(({ id, reasons: [first] }) => {
      return `${id}: ${first ? printFileIssue(first) : 'unknown'}`;
    });
    throw badOption(
      `${some} run here:\n${reasons.join('\n')}`,
      'List all reasons: offsite tasks list PATH --details',
    );
  }
  return planned;
}

const shown = 20;

/** What to print about tasks that are not run; undefined if there are none. */
export function leftOutText(leftOut: readonly LeftOut[]): Printable | undefined {
  if (leftOut.length === 0) return undefined;
  const more = leftOut.length - shown;
  return stack([
    text`${plural(leftOut.length, 'task')} cannot run here, and will not be started:`,
    ...leftOut.slice(0, shown).map(({ id, reasons: [first] }) => {
      return text`  ${id}: ${first ? printFileIssue(first) : 'unknown'}`;
    }),
    ...(more > 0 ? [text`  … and ${more} more: offsite tasks list PATH lists them`] : []),
  ]);
}

function oneOfThem(file: string | undefined): string {
  const usual = ['evals/suite.yaml', 'suite.yaml'].find((path) =>
    statSync(path, { throwIfNoEntry: false })?.isFile(),
  );
  return `Name one of them.${file === undefined && usual ? ` There is ${usual} here.` : ''}`;
}

function badOption(message: string, hint: string): OffsiteError {
  return inputError('TASKS_REFUSED', message, { hint });
}

/** What a suite may read, and the keys that it must not contain. */
export function suiteOptions(
  { allowOutside = [] }: { allowOutside?: string[] | undefined },
  { config, dataFolder, host }: Pick<Context, 'config' | 'dataFolder' | 'host'>,
): SuiteOptions {
  return {
    allowOutside: [...config.allowOutside, ...allowOutside],
    except: [dataFolder],
    keys: host.keys,
  };
}

/**
 * Fetches the git sources of a suite into the data folder, with the user's own credentials where the
 * configuration names the host.
 */
export async function sourcesOf(
  file: string,
  options: { allowOutside?: string[] | undefined },
  context: Context,
  { progress, signal }: { progress: Observer; signal: AbortSignal },
): Promise<FetchedSources> {
  const { dataFolder, env, config } = context;
  let shown: string | undefined;
  const show = (title: string | undefined) => {
    if (shown !== undefined) progress.update({ kind: 'step', title: shown, state: 'ends' });
    shown = title;
    if (title !== undefined) progress.update({ kind: 'step', title, state: 'begins' });
  };
  try {
    return await fetchSources(file, {
      ...suiteOptions(options, context),
      dataFolder,
      env,
      signal,
      note: progress.note,
      onProgress: show,
      credentialsFor: config.git.credentials,
    });
  } finally {
    show(undefined);
  }
}

/** Options that set for tasks what a suite file sets itself. */
const onlyOfTasks = {
  format: '--format',
  profile: '--profile',
  sandbox: '--sandbox',
  threshold: '--threshold',
  image: '--image',
  build: '--build',
  buildArg: '--build-arg',
  testCommand: '--test-command',
  testParser: '--test-parser',
};

/** Throws an `input` error if one of these options, which do not apply to a suite file, is given with one. */
export function refuseTaskOptions(options: object): void {
  const given = Object.entries(onlyOfTasks).flatMap(([key, name]) =>
    Reflect.get(options, key) === undefined ? [] : [name],
  );
  if (given.length === 0) return;
  const verb = given.length === 1 ? 'is' : 'are';
  throw inputError(
    'OPTION_WITHOUT_TASKS',
    `${given.join(', ')} ${verb} only for --tasks; a suite file has its own settings`,
    {
      hint:
        'threshold' in options && options.threshold !== undefined
          ? 'To fail the command below a pass rate, use --fail-under. What a judge must reach is judge.threshold in the suite.'
          : 'Change the suite file, or leave the option out.',
    },
  );
}

/**
 * The suite with the variants of these names alone, or of beginnings of names. Throws an `input` error for
 * one that none has, or several.
 */
export function withVariants(plan: SuitePlan, names: readonly string[] | undefined): SuitePlan {
  if (names === undefined) return plan;
  const known = plan.variants.map(({ name }) => name);
  const chosen = names.map((name) => {
    const [meant, ...others] = begunWith(name, known);
    if (meant !== undefined && others.length === 0) return meant;
    const problem =
      meant === undefined
        ? `the suite has no variant ${name}${orNearest(name, known)}`
        : `several variants begin with ${name}: ${[meant, ...others].join(', ')}`;
    throw inputError('VARIANT_UNKNOWN', problem, {
      hint: 'With a suite file, --variant takes names of its variants; with --tasks, HARNESS:MODEL.',
    });
  });
  return { ...plan, variants: plan.variants.filter(({ name }) => chosen.includes(name)) };
}

/** What the options say of rows. Throws an `input` error for those that contradict each other. */
export function rowSetupOf({ image, build, buildArg: args, testCommand, testParser }: RowOptions) {
  if (image !== undefined && build !== undefined)
    throw badOption('--image and --build cannot be used together', 'Name one of them.');
  if (args && build === undefined) throw badOption('--build-arg needs --build', 'Name the folder to build.');
  if (build !== undefined && !isFolder(build))
    throw badOption(`there is no folder ${build}`, 'Name the folder that has the Dockerfile.');
  const setup: Pick<TasksSource, 'image' | 'build' | 'test'> = {
    ...(image !== undefined && { image }),
    ...(build !== undefined && {
      build: { context: resolve(build), dockerfile: 'Dockerfile', args: args ?? {} },
    }),
    test: { command: testCommand, parser: testParser ?? 'pytest' },
  };
  return setup;
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
