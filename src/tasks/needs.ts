import { OffsiteError } from '../base/offsite-error.ts';
import { networkProblems } from '../suite/case-network.ts';
import { usedImages } from '../suite/dockerfile.ts';
import { type Frontend, namedFrontend, plainDockerfile, unmetNeeds } from '../suite/dockerfile-features.ts';
import type { CaseEnvironment, PlannedBuild } from '../suite/environment.ts';
import type { FileIssue } from '../suite/file-issues.ts';
import type { PlannedCase, Sandbox } from '../suite/plan.ts';
import { type Obstacle, Remarks } from './supported.ts';
import { issueAt } from './task-folder.ts';

/** What a task needs of an engine. */
export interface TaskNeeds {
  cpus: number | undefined;
  memoryBytes: number | undefined;
  /** The images that it begins with, as the configuration maps them, and where its files name them. */
  images: { name: string; at: FileIssue }[];
  /** Where its repository is, if the task is about one commit, and its later ones must not be there. */
  repository: { image: string; at: FileIssue; folder: string | undefined; base: string } | undefined;
  builds: { dockerfile: string; file: string; frontend: string | undefined }[];
}

/** What an engine has. */
export interface Machine {
  cpus: number;
  memoryBytes: number;
  hasImage(name: string): Promise<boolean>;
  /** What an agent in a sandbox of an image could read of commits after one of its repository. */
  laterCommits(image: string, folder: string | undefined, base: string): Promise<string | undefined>;
  /** What builds images on it. */
  builder(): Promise<{ kind: 'buildkit' | 'classic'; frontend: Frontend }>;
}

export function needsOf({ local: { environment, tests } }: PlannedCase, place: string): TaskNeeds {
  const { cpus, memory } = environment.resources;
  const all = [environment, tests?.fresh?.environment];
  const images = all.flatMap((each) => (each ? imagesOf(each, place) : []));
  const services = all.flatMap((each) => each?.services ?? []);
  const builds = [...all, ...services].flatMap((each) => (each?.build ? [buildOf(each.build)] : []));
  const { brought } = tests?.fresh ?? {};
  const [own] = imagesOf(environment, place);
  const repository =
    environment.image && own && brought?.kind === 'workspace'
      ? { image: own.name, at: own.at, folder: environment.workdir, base: brought.base }
      : undefined;
  return { cpus, memoryBytes: memory, images, builds, repository };
}

function buildOf({ dockerfile, file, images }: PlannedBuild): TaskNeeds['builds'][number] {
  const named = namedFrontend(dockerfile);
  return { dockerfile, file, frontend: named === undefined ? undefined : (images[named] ?? named) };
}

function imagesOf({ image, build }: CaseEnvironment, place: string): TaskNeeds['images'] {
  if (image) return [{ name: image.mappedTo ?? image.name, at: issueAt(place, image.name) }];
  if (!build) return [];
  return usedImages(build.dockerfile, build.args).map(({ name, line }) => ({
    name: build.images[name] ?? name,
    at: { ...issueAt(build.file, name), line },
  }));
}

/** What a machine cannot give to a task, and why its trials would be void. */
export async function machineObstacles(
  { cpus = 0, memoryBytes = 0, images, builds, repository }: TaskNeeds,
  place: string,
  machine: Machine,
): Promise<Obstacle[]> {
  const remarks = new Remarks();
  const mebibytes = (bytes: number) => `${Math.floor(bytes / 1024 ** 2)} MiB`;
  if (cpus > machine.cpus)
    remarks.uses('machine-limits', issueAt(place, `asks for ${cpus} processors, more than ${machine.cpus}`));
  if (memoryBytes > machine.memoryBytes) {
    const asked = `asks for ${mebibytes(memoryBytes)} of memory, more than ${mebibytes(machine.memoryBytes)}`;
    remarks.uses('machine-limits', issueAt(place, asked));
  }
  for (const { name, at } of images)
    if (name !== 'scratch' && !(await machine.hasImage(name))) remarks.uses('absent-image', at);
  if (repository && (await machine.hasImage(repository.image))) {
    const { image, at, folder, base } = repository;
    try {
      const later = await machine.laterCommits(image, folder, base);
      if (later !== undefined) remarks.uses('later-commits', { ...at, message: later });
    } catch (error) {
      // One bad image must not end the list of all others.
      if (!(error instanceof OffsiteError) || error.code !== 'TRIAL_VOID') throw error;
      remarks.uses('unsearched-image', { ...at, message: error.message });
    }
  }
  for (const { dockerfile, file, frontend } of builds) {
    const { kind, frontend: own } = await machine.builder();
    const isNamed = frontend !== undefined && kind === 'buildkit' && (await machine.hasImage(frontend));
    const used = isNamed ? 'current' : own;
    for (const { line, message } of unmetNeeds(plainDockerfile(dockerfile, used).text, used))
      remarks.uses('builder', { ...issueAt(file, message), line });
  }
  return remarks.obstacles;
}

/** Which hosts a task asks for that a sandbox does not permit, each place once. */
export function networkObstacles(
  { local }: PlannedCase,
  sandbox: Pick<Sandbox, 'network' | 'hosts'>,
): readonly Obstacle[] {
  const remarks = new Remarks();
  for (const { kind, at, hosts } of networkProblems(local, sandbox))
    remarks.uses(kind === 'missing' ? 'unpermitted-host' : 'mixed-networks', {
      ...at,
      message: hosts.join(', '),
    });
  return remarks.obstacles;
}
