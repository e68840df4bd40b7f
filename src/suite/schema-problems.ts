import { z } from 'zod';
import { nearest } from '../text/nearest.ts';

/** A problem of a value, at its path in the document. */
export interface SchemaProblem {
  path: (string | number)[];
  message: string;
}

/** What a file was checked by, and what is beside it, for hints about keys that it may not have. */
export interface FileSchema {
  schema?: z.ZodType;
  /** The whole value that was checked. */
  document?: unknown;
  /** What the other files of a project are called, and the schemas by which they are checked. */
  others?: Readonly<Record<string, z.ZodType>> | undefined;
}

/**
 * Zod's issues as paths and sentences: one for each unknown key, and for a union those of the member that was
 * meant.
 *
 * @param error from a check with `reportInput`
 */
export function schemaProblems(error: z.ZodError, file: FileSchema = {}): SchemaProblem[] {
  return error.issues.flatMap((issue) => flatten(issue, file));
}

function flatten(issue: z.core.$ZodIssue, file: FileSchema): SchemaProblem[] {
  const { schema } = file;
  const path = issue.path as SchemaProblem['path'];
  if (issue.code === 'unrecognized_keys') {
    const place = { known: schema ? keysAt(schema, path) : [], isTop: path.length === 0 };
    return issue.keys.map((key) => ({ path: [...path, key], message: unknownKey(key, place, file) }));
  }
  if (issue.code === 'invalid_union') {
    const meant = meantMember(issue.errors);
    const { input } = issue;
    // With keys that no member has, the union's own message says what there is.
    const isMap = typeof input === 'object' && input !== null && !Array.isArray(input);
    const keys = isMap ? Object.keys(input) : [];
    const known = schema ? keysAt(schema, path) : keys;
    const isForeign = keys.length > 0 && keys.every((key) => nearest(key, known) === undefined);
    // None of the keys by which its forms are told apart, and one that another runner has for them.
    const isOther =
      keys.some((key) => !known.includes(key) && wordOf(key, known) !== undefined) &&
      issue.errors.every((member) => member.some(lacksKey));
    if (meant && (isForeign || isOther) && !isZods(issue)) return [{ path, message: issue.message }];
    if (meant) return meant.flatMap((inner) => flatten({ ...inner, path: [...path, ...inner.path] }, file));
  }
  if (issue.code === 'invalid_key') {
    return issue.issues.map((inner) => ({ path, message: expectationOf(inner) }));
  }
  if (isMissing(issue)) return [{ path, message: `is required: ${expectationOf(issue)}` }];
  return [{ path, message: `${expectationOf(issue)}${unquoted(issue)}` }];
}

/**
 * The member of a union that was meant: of those that take such a value, the one that fits its keys best, or
 * the first of several.
 */
function meantMember(members: z.core.$ZodIssue[][]): z.core.$ZodIssue[] | undefined {
  const possible = members.filter((issues) =>
    issues.every((inner) => inner.path.length > 0 || inner.code === 'unrecognized_keys'),
  );
  return possible.toSorted((one, other) => misfits(one) - misfits(other))[0];
}

/**
 * The number of keys that a member does not know. If there are any, the keys that it requires and that are
 * missing count too.
 */
function misfits(issues: z.core.$ZodIssue[]): number {
  const unknown = issues.flatMap((inner) =>
    inner.code === 'unrecognized_keys' && inner.path.length === 0 ? inner.keys : [],
  ).length;
  return unknown === 0
    ? 0
    : unknown +
        issues.filter(
          (inner) =>
            inner.path.length === 1 && inner.input === undefined && inner.code !== 'unrecognized_keys',
        ).length;
}

function lacksKey(issue: z.core.$ZodIssue): boolean {
  return issue.path.length === 1 && issue.code !== 'unrecognized_keys' && isMissing(issue);
}

/** What to do if quotes are missing, so that YAML reads `true` or `12` as something else, or are too many. */
function unquoted(issue: z.core.$ZodIssue): string {
  const { input } = issue;
  if (isQuotedNumber(issue)) return ': remove its quotes';
  const isScalar = typeof input === 'boolean' || typeof input === 'number' || typeof input === 'bigint';
  // A message of the schema's own may want a form that quotes do not give, such as a duration.
  const saysText = /\b(?:string|script|text)\b/.test(issue.message);
  return isScalar && saysText && wantsText(issue)
    ? `; without quotes YAML reads it as a ${typeof input}: quote it`
    : '';
}

function isQuotedNumber({ code, input, ...issue }: z.core.$ZodIssue): boolean {
  const wantsNumber =
    code === 'invalid_type' && 'expected' in issue && /^(?:int|number)$/.test(issue.expected);
  return wantsNumber && typeof input === 'string' && /^-?[\d.]+$/.test(input);
}

function wantsText(issue: z.core.$ZodIssue): boolean {
  if (issue.code === 'invalid_union')
    return issue.errors.some((member) => member.some((one) => one.path.length === 0 && wantsText(one)));
  return issue.code === 'invalid_type' && issue.expected === 'string';
}

/** @param place the keys of the map that has the key, and whether that is the whole file */
function unknownKey(
  key: string,
  { known, isTop }: { known: readonly string[]; isTop: boolean },
  { schema, document, others = {} }: FileSchema,
): string {
  if (known.includes('apiKeyEnv') && /^(api[-_]?)?(key|token)$/i.test(key))
    return 'unknown key; keys stay in the environment: name the variable that holds it as apiKeyEnv';
  if (known.includes(key)) return 'is not possible together with the other keys here';
  if (known.includes('scripted') && ['fillForms', 'turns', 'otherwise'].includes(key))
    return 'unknown key here; it belongs in the script file, which `scripted` names';
  const inSuite = known.includes('connections') ? ofSuites[key] : undefined;
  if (inSuite !== undefined) return `unknown key here; ${inSuite}`;
  const [other] = Object.entries(others).find(([, top]) => isTop && keysAt(top, []).includes(key)) ?? [];
  if (other !== undefined) return `unknown key here; it belongs in ${other}`;
  const near = nearest(key, known);
  // `model:` in place of `models:`: a letter too few or too many is likelier than another level.
  const isNumber = near !== undefined && (near === `${key}s` || key === `${near}s`);
  // Before places, which may have a key of that name for something else.
  const ours = wordOf(key, known);
  if (ours !== undefined) return `unknown key; here that is ${ours}`;
  const elsewhere = schema ? placesOf(schema, key).filter((place) => isIn(document, place)) : [];
  const places = elsewhere.length > mostPlaces ? '' : elsewhere.join(' or ');
  if (places !== '' && isNumber) return `unknown key; did you mean "${near}"? "${key}" belongs at ${places}`;
  if (places !== '') return `unknown key here; it belongs at ${places}`;
  if (near !== undefined) return `unknown key; did you mean "${near}"?`;
  if (known.length === 0) return 'unknown key; check its spelling';
  return `unknown key; expected ${known.join(', ')}`;
}

/** Whether a document has the part that a place is in: `tasks.path` is not meant in a suite of cases. */
function isIn(document: unknown, place: string): boolean {
  const [, top = '', rest = ''] = /^([^.[]*)(.*)$/.exec(place) ?? [];
  return rest === '' || typeof document !== 'object' || document === null || Object.hasOwn(document, top);
}

/** Said of keys of a suite at the top of a configuration, of which more can be said than their file. */
const ofSuites: Readonly<Record<string, string>> = {
  judges: 'a suite names its judges; daemon.judges has those of runs that a daemon finds',
  judge: 'it belongs in a case of a suite',
  checks: 'it belongs in a case of a suite',
  environment: 'it belongs in a suite; sandboxes has images and limits',
};

/** What a key of promptfoo, Inspect or Harbor is called in a map that has these keys. */
function wordOf(key: string, known: readonly string[]): string | undefined {
  const ofMap = wordsIn.find(([own]) => known.includes(own))?.[1] ?? {};
  if (Object.hasOwn(ofMap, key)) return ofMap[key];
  if (key === 'tests' && !known.includes('cases')) return undefined;
  return Object.hasOwn(wordsOfOthers, key) ? wordsOfOthers[key] : undefined;
}

/** By a key that only one kind of map has: a check, a case, a model. */
const wordsIn: readonly (readonly [own: string, words: Readonly<Record<string, string>>])[] = [
  [
    'exitCode',
    {
      type: '`file`, `json` or `run`: the key says what is checked',
      path: '`file`, or `json` with `at`',
      value: '`contains`, `matches` or `equals`',
      command: '`run`',
      cmd: '`run`',
      output: '`run`, whose output it reads',
      stdout: '`run`',
      regex: '`matches`',
      pattern: '`matches`',
      includes: '`contains`',
      notContains: "`run: '! grep ...'`",
      not_contains: "`run: '! grep ...'`",
      not: "`run: '! ...'`",
      exists: '`file`, with `absent: true` for what must not exist',
    },
  ],
  [
    'protected',
    {
      prompt: '`variables` of the case, for {{name}} in suite.prompt',
      description: '`name`',
      timeout: '`environment.timeouts`, or `timeouts` of a sandbox',
      expected: '`checks` or `verify`',
      repo: '`source`',
      setup: '`prepare`',
      image: '`environment`',
    },
  ],
  ['apiKeyEnv', { provider: '`wire` and `baseUrl`; `offsite models add` writes both', url: '`baseUrl`' }],
];

/** Keys of promptfoo, Inspect and Harbor that no key here resembles. */
const wordsOfOthers: Readonly<Record<string, string>> = {
  assert: '`checks` and `judge` of a case',
  assertions: '`checks` and `judge` of a case',
  scorer: '`checks`, `judge` or `validator` of a case',
  scorers: '`checks`, `judge` or `validator` of a case',
  tests: '`cases`',
  providers: '`variants`',
  dataset: '`cases`',
  solver: '`variants`',
  target: '`checks` or `verify` of a case',
  input: '`variables` of a case, for the prompt of the suite',
  instruction: '`variables` of a case, for the prompt of the suite',
  agent: '`harness` of a variant',
  timeout_sec: '`timeouts` of a sandbox in offsite.yaml',
  n_concurrent_trials: '`concurrency`',
  orchestrator: '`concurrency`',
  agents: '`variants` of a suite',
  epochs: '`trials`',
  repeat: '`trials`',
  n_attempts: '`trials`',
  vars: '`variables` of a case',
};

/** If a key may be in more places than this, it does not show which place was meant. */
const mostPlaces = 3;

function isMissing(issue: z.core.$ZodIssue): boolean {
  if (issue.code === 'invalid_union')
    return issue.errors.length > 0 && issue.errors.every((member) => member.every(isMissing));
  const isAbsent = issue.input === undefined;
  return isAbsent && (issue.code === 'invalid_value' || (issue.code === 'invalid_type' && isZods(issue)));
}

/** Whether a problem has zod's own message. A message of the schema's own stays as it is. */
function isZods(issue: z.core.$ZodIssue): boolean {
  return issue.message === z.config().localeError?.(issue as z.core.$ZodRawIssue);
}

/** What was expected, without what only programmers read. */
function expectationOf(issue: z.core.$ZodIssue): string {
  if (!isZods(issue)) return issue.message;
  if (issue.code === 'too_small')
    return boundOf(issue.origin, issue.inclusive ? 'at least' : 'more than', issue.minimum);
  if (issue.code === 'too_big')
    return boundOf(issue.origin, issue.inclusive ? 'at most' : 'less than', issue.maximum);
  if (issue.code === 'invalid_value')
    return `expected ${issue.values.map(String).join(', ')}`.replace(/, ([^,]*)$/, ' or $1');
  if (issue.code === 'invalid_format')
    return issue.format === 'url'
      ? 'expected a URL that begins with https:// or http://'
      : 'is not in the expected form';
  return expectation(issue);
}

function boundOf(origin: string, words: string, bound: number | bigint): string {
  if (origin === 'string') return bound === 1 ? 'is empty' : `expected ${words} ${bound} characters`;
  if (origin === 'array') return `expected ${words} ${bound} ${bound === 1 ? 'item' : 'items'}`;
  return `expected a number of ${words} ${bound}`
    .replace('of more than', 'more than')
    .replace('of less than', 'less than');
}

/** Zod's names of types, in the words of a person who writes YAML. */
const kinds: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'keys with values',
  record: 'keys with values',
  null: 'empty',
  Infinity: 'infinite',
  NaN: 'nan',
};

/** `expected a number, but this is a text`; of what is missing, only the first part. */
function expectation(issue: z.core.$ZodIssue): string {
  const wanted = issue.code === 'invalid_type' ? kinds[issue.expected] : undefined;
  if (wanted === undefined) return issue.message.replace(/^Invalid input: /, '');
  const { input } = issue;
  const isInfinite = typeof input === 'number' && !Number.isFinite(input);
  const received = isInfinite ? String(input) : z.core.util.parsedType(input);
  const given = wanted === kinds.int && received === 'number' ? undefined : kinds[received];
  return given === undefined ? `expected ${wanted}` : `expected ${wanted}, but this is ${given}`;
}

/** The keys that the map at a path of a document may have, in any of the forms that the map may take. */
export function keysAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): string[] {
  const [key, ...rest] = path;
  if (schema instanceof z.ZodObject) {
    if (key === undefined)
      return Object.keys(schema.shape).filter((each) => !schema.shape[each]?.meta()?.deprecated);
    const inner = Object.hasOwn(schema.shape, key) ? schema.shape[String(key)] : undefined;
    return inner === undefined ? [] : keysAt(inner, rest);
  }
  if (schema instanceof z.ZodUnion)
    return [...new Set(schema.options.flatMap((option) => keysAt(option, path)))];
  if (schema instanceof z.ZodPipe) {
    // A preprocessing comes before the schema that knows the keys, a transformation after it.
    return keysAt(schema.in instanceof z.ZodTransform ? schema.out : schema.in, path);
  }
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodNullable
  )
    return keysAt(schema.unwrap(), path);
  if (key === undefined) return [];
  if (schema instanceof z.ZodArray) return keysAt(schema.element, rest);
  return schema instanceof z.ZodRecord ? keysAt(schema.valueType, rest) : [];
}

/** How deep {@link placesOf} looks. Deeper keys are too far away to be meant. */
const levelsSearched = 3;

/** Where a document may have a key, nearest to its root: `suite.prompt`, or `cases[].verify`. */
function placesOf(schema: z.core.$ZodType, key: string): string[] {
  let level: { place: string; path: PropertyKey[] }[] = [{ place: '', path: [] }];
  for (let depth = 0; depth < levelsSearched; depth++) {
    const inner = level.flatMap(({ place, path }) =>
      keysAt(schema, path).map((each) => ({
        each,
        place: `${place}${place && '.'}${each}`,
        path: [...path, each],
      })),
    );
    const found = inner.filter(({ each }) => each === key);
    if (found.length > 0) return found.map(({ place }) => place);
    // The first item of a list stands for all.
    level = inner.map(({ place, path }) =>
      keysAt(schema, path).length > 0 ? { place, path } : { place: `${place}[]`, path: [...path, 0] },
    );
  }
  return [];
}
