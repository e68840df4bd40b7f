import { createHash } from 'node:crypto';
import { canonicalJson, canonicalPieces, sha256 } from '../../base/canonical-json.ts';
import { serviceRequests } from '../../bounds/callers.ts';
import { expandedTexts } from '../../bounds/suite.ts';
import {
  type Case,
  type StartRequest,
  type Suite,
  type Variant,
  wholeCase,
} from '../../contract/definition.ts';
import type { Issue } from '../../contract/errors.ts';
import type { RunVariant, Setup } from '../../contract/record.ts';
import {
  type CountedNames,
  countNamesInSteps,
  expandedLength,
  expandedPieces,
  type Variables,
} from '../../suite/variables.ts';
import { pieceSizes } from '../json-response.ts';
import { jsonIn } from '../store/runs.ts';

/**
 * The setup of a case's trials, as run records carry it: every text with the case's variables filled in.
 * Unknown names stay. It is made whenever it is read, and never stored: a few megabytes of `{{name}}` can
 * stand for terabytes, and the cases of a batch share one prompt.
 */
export function setupOf(suite: Suite, definition: Case): Setup {
  return jsonIn([...setupPieces(suite, definition)].join(''));
}

/**
 * The JSON text of {@link setupOf} in small pieces. A caller who is slow to read a page holds one of them,
 * not a whole setup.
 */
export function* setupPieces(suite: Suite, definition: Case): Generator<string> {
  const { prepare, source, verify, validator, variables = {} } = definition;
  yield* member('{"prompt":', suite.prompt, variables);
  if (prepare) yield* member(',"prepare":', prepare.source, variables);
  if (source) yield `,"source":${JSON.stringify(source)}`;
  if (verify !== undefined) yield* member(',"verify":', verify, variables);
  if (validator) yield* member(',"validator":', validator.source, variables);
  if (validator?.sourceFiles) {
    yield ',"validatorFiles":[';
    for (const [index, { path, content }] of validator.sourceFiles.entries()) {
      const comma = index > 0 ? ',' : '';
      yield* member(`${comma}{"path":${JSON.stringify(path)},"content":`, content, variables);
      yield '}';
    }
    yield ']';
  }
  yield '}';
}

function* member(before: string, text: string, variables: Variables): Generator<string> {
  yield `${before}"`;
  // Half a surrogate pair at the end of a piece is written as an escape, like the other half.
  for (const piece of expandedPieces(text, variables, pieceSizes.text))
    yield JSON.stringify(piece).slice(1, -1);
  yield '"';
}

/**
 * What is too long in the setups of a request, with their variables filled in: a text, or all texts of a case
 * together. Counts exactly, in a time that grows with the request, and builds no text.
 */
export function* oversizedSetups({
  suite,
  cases,
}: Pick<StartRequest, 'suite' | 'cases'>): Generator<void, Issue[]> {
  const prompt = yield* countNamesInSteps(suite.prompt);
  const issues: Issue[] = [];
  for (const [index, one] of cases.entries()) {
    yield;
    issues.push(...(yield* oversizedIn(one, index, prompt)));
  }
  return issues;
}

function* oversizedIn(one: Case, index: number, prompt: CountedNames): Generator<void, Issue[]> {
  const { variables = {} } = one;
  const most = serviceRequests.bytes.variables;
  if (JSON.stringify(variables).length > most)
    return [issue(['cases', index, 'variables'], `has more than ${most} characters as JSON`)];
  yield;
  // The prompt is the suite's; what the case adds to it is its variables.
  const lengths = [{ path: ['variables'] as Issue['path'], length: expandedLength(prompt, variables) }];
  for (const { path, text } of textsOf(one))
    lengths.push({ path, length: expandedLength(yield* countNamesInSteps(text), variables) });
  const tooLong = lengths.filter(({ length }) => length > expandedTexts.bytes.text);
  if (tooLong.length > 0) {
    return tooLong.map(({ path }) =>
      issue(['cases', index, ...path], expandedTooLong(expandedTexts.bytes.text)),
    );
  }
  const sum = lengths.reduce((all, { length }) => all + length, 0);
  return sum > serviceRequests.bytes.setup
    ? [issue(['cases', index], expandedTooLong(serviceRequests.bytes.setup))]
    : [];
}

function textsOf({ prepare, verify, validator }: Case): { path: Issue['path']; text: string }[] {
  return [
    ...(prepare ? [{ path: ['prepare', 'source'], text: prepare.source }] : []),
    ...(verify === undefined ? [] : [{ path: ['verify'], text: verify }]),
    ...(validator ? [{ path: ['validator', 'source'], text: validator.source }] : []),
    ...(validator?.sourceFiles ?? []).map(({ content }, index) => ({
      path: ['validator', 'sourceFiles', index, 'content'],
      text: content,
    })),
  ];
}

function expandedTooLong(most: number): string {
  return `has more than ${most} characters after its variables are replaced`;
}

function issue(path: Issue['path'], message: string): Issue {
  return { _tag: 'Refinement', path, message };
}

/**
 * The variants as run records carry them. The same model, harness and sandbox have the same id in every
 * batch. If a request names a variant again, its id gets `-2`, `-3` and so on, so that cells stay separate.
 * Fields that a request cannot have (profile, user model) are left out.
 */
export function runVariants(variants: Variant[]): RunVariant[] {
  const seen = new Map<string, number>();
  return variants.map(({ model, credentials }) => {
    const named = {
      model,
      ...(credentials && {
        harness: credentials.harnessConnectionId,
        sandbox: credentials.sandboxConnectionId,
      }),
    };
    const id = `v_${sha256(canonicalJson(named)).toString('hex').slice(0, 10)}`;
    const times = (seen.get(id) ?? 0) + 1;
    seen.set(id, times);
    return { id: times === 1 ? id : `${id}-${times}`, ...named };
  });
}

/** The variant of a run as a request names it. */
export function requestedVariant({ model, harness, sandbox }: RunVariant): Variant {
  if (harness === undefined || sandbox === undefined) return { model };
  return { model, credentials: { harnessConnectionId: harness, sandboxConnectionId: sandbox } };
}

/** Characters of a piece after which others may be served. */
const longPiece = 8 * 1024;

/** The hash of a case for one variant. */
export type DefinitionHash = (variant: Variant | undefined) => string;

/**
 * The hash of a prompt, a case and a variant, as canonical JSON. A missing field counts as its default, so a
 * request that leaves it out has the same hash as one that writes it down. Prompt and case are hashed once
 * for all variants, because they can be long.
 */
export function definitionHash(prompt: string, started: Case): DefinitionHash {
  for (const steps = definitionHashInSteps(prompt, started); ; ) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** The same, with places at which others may be served. */
export function* definitionHashInSteps(prompt: string, started: Case): Generator<void, DefinitionHash> {
  const hash = createHash('sha256').update('{"case":');
  for (const piece of canonicalPieces(wholeCase(started))) {
    hash.update(piece);
    if (piece.length > longPiece) yield;
  }
  hash.update(`,"prompt":${JSON.stringify(prompt)},"variant":`);
  return (variant) =>
    hash
      .copy()
      .update(`${canonicalJson(variant)}}`)
      .digest('hex');
}
