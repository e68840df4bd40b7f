import { createHash } from 'node:crypto';
import { canonicalJson } from '../base/canonical-json.ts';
import type { Fingerprint } from '../record/fingerprint.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import type { CaseEnvironment } from '../suite/environment.ts';
import {
  environmentContent,
  stepsContent,
  testsContent,
  testsInContent,
} from '../suite/environment-content.ts';
import { profileVersion } from '../suite/planned-variant.ts';
import type { TrialSpec } from './spec.ts';

/**
 * The fingerprint of a trial, from what it was asked to do and what was found while it ran. Where files are,
 * and images without a digest of a registry, are no part of it: they differ between two machines.
 */
export function fingerprintOf(
  spec: TrialSpec,
  { harnessVersion, images, models }: Pick<TrialRecord, 'harnessVersion' | 'images' | 'models'>,
): Fingerprint {
  const hashes = Object.entries(partsOf(spec, images)).flatMap(([part, value]) =>
    value === undefined ? [] : [[part, hashOf(value)] as const],
  );
  return {
    ...Object.fromEntries(hashes),
    ...behindNames(models?.usage),
    model: spec.model,
    harness: harnessVersion === undefined ? spec.harness : `${spec.harness} ${harnessVersion}`,
    profile: profileVersion(spec.profile) ?? 'none',
  };
}

/** The part of a fingerprint that says from which commit a trial begins; undefined without one. */
export function sourcePart(environment: CaseEnvironment): string | undefined {
  const { source } = environmentContent(environment);
  return source && hashOf(source);
}

/**
 * The sha256 of all parts together. The hashes of a fingerprint are short, for people, so that an owner could
 * look for two validators with the same one.
 */
export function definitionDigest(spec: TrialSpec, { images }: Pick<TrialRecord, 'images'>): string {
  const { model, harness, profile } = spec;
  const all = { ...partsOf(spec, images), model, harness, profile: profileVersion(profile) };
  return createHash('sha256').update(canonicalJson(all)).digest('hex');
}

function partsOf(spec: TrialSpec, images: TrialRecord['images'] = []): Record<string, unknown> {
  const { environment, tests, testsIn, steps, validator, sandbox } = spec;
  const { source, ...content } = environmentContent(environment);
  const digests = images.flatMap(({ digest }) => digest ?? []).toSorted();
  const { name: _, ...limits } = sandbox;
  return {
    prompt: spec.prompt,
    variables: [spec.variables, spec.gradingVariables ?? null],
    source,
    prepare: spec.prepare,
    environment: content,
    images: digests.length > 0 ? digests : undefined,
    verify: spec.verify && [spec.verify, spec.verifyPlace],
    validator: validator && { ...validator, manifest: validator.manifest.map(({ name }) => name) },
    tests: tests && [testsContent(tests), testsIn && testsInContent(testsIn), spec.testsHosts ?? null],
    steps: steps && stepsContent(steps),
    user: spec.user,
    judges: spec.judges.length > 0 ? spec.judges : undefined,
    artifacts: [spec.artifacts, spec.artifactsExcept ?? null],
    protected: spec.protected,
    agent: spec.agent,
    sandbox: limits,
  };
}

/** What stood behind the names of the models that were asked. */
function behindNames(usage: NonNullable<TrialRecord['models']>['usage'] = []): Fingerprint {
  const parts = usage.flatMap(({ role, model, behind }): [string, string | undefined][] => {
    if (!behind) return [];
    if (role !== 'agent') return [[`${role} ${model}`, hashOf(behind)]];
    return [
      ['modelId', behind.id],
      ['modelAddress', behind.at],
    ];
  });
  return Object.fromEntries(parts.flatMap(([part, value]) => (value === undefined ? [] : [[part, value]])));
}

/** 16 hexadecimal digits. */
function hashOf(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex').slice(0, 16);
}
