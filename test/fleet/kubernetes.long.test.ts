import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { validateManifests } from '../../scripts/set-up/kubernetes-validate.ts';
import { healthRoutes } from '../../src/fleet/worker/routes.ts';
import { ConfigFile } from '../../src/suite/config-file.ts';
import { offsite } from '../cli/offsite.ts';
import { openPlace } from '../cli/place.ts';

const folder = fileURLToPath(new URL('../../examples/kubernetes', import.meta.url));
const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'));

interface Container {
  image: string;
  args: string[];
  env: { name: string; value: string }[];
  restartPolicy?: string;
  securityContext: { privileged?: boolean; capabilities?: { drop: string[] } };
  volumeMounts: { name: string; mountPath: string }[];
  livenessProbe: { httpGet: { path: string } };
  readinessProbe: { httpGet: { path: string } };
}

interface Manifest {
  kind: string;
  metadata: { name: string; namespace?: string };
  data: Record<string, string>;
  spec: {
    selector: { matchLabels: Record<string, string> };
    template: { metadata: { labels: Record<string, string> }; spec: PodSpec };
    volumeClaimTemplates?: { metadata: { name: string } }[];
  };
}

interface PodSpec {
  initContainers: Container[];
  containers: Container[];
  volumes: ({ name: string } & Record<string, unknown>)[];
}

function documentsOf(file: string): Manifest[] {
  return parseAllDocuments(readFileSync(join(folder, file), 'utf8')).map((document) => document.toJS());
}

function workers(): Manifest[] {
  const found = files.flatMap(documentsOf).filter(({ kind }) => /^(DaemonSet|StatefulSet)$/.test(kind));
  expect(found).toHaveLength(2);
  return found;
}

function workerOf({ spec }: Manifest): Container {
  const [worker] = spec.template.spec.containers;
  if (!worker) throw new Error('a manifest without a container');
  return worker;
}

/** Writes a changed copy of a manifest. */
function changed(kind: string, change: (manifest: Manifest) => void): string {
  const [found] = files.flatMap(documentsOf).filter((manifest) => manifest.kind === kind);
  if (!found) throw new Error(`no manifest of a ${kind}`);
  const manifest = structuredClone(found);
  change(manifest);
  const place = mkdtempSync(join(tmpdir(), 'offsite-manifest-'));
  onTestFinished(() => rmSync(place, { recursive: true, force: true }));
  const file = join(place, 'changed.yaml');
  writeFileSync(file, stringify(manifest));
  return file;
}

test.each(['1.29', '1.33', '1.37'])(
  'Kubernetes %s knows everything in the manifests',
  async (version) => {
    const paths = files.map((name) => join(folder, name));
    const count = files.flatMap(documentsOf).length;
    expect(count).toBeGreaterThanOrEqual(5);
    expect(await validateManifests(paths, version)).toHaveLength(count);
  },
  180_000,
);

test.each<[string, string, (manifest: Manifest) => void, RegExp]>([
  ['an unknown key', 'DaemonSet', (one) => Object.assign(workerOf(one), { imagee: 'x' }), /imagee/],
  [
    'an unknown key of a pod',
    'StatefulSet',
    (one) => Object.assign(one.spec.template.spec, { hosts: 1 }),
    /hosts/,
  ],
  ['another type', 'StatefulSet', (one) => Object.assign(one.spec, { replicas: 'two' }), /two/],
  ['no selector', 'DaemonSet', (one) => void Reflect.deleteProperty(one.spec, 'selector'), /selector/],
  ['an unknown kind', 'DaemonSet', (one) => Object.assign(one, { kind: 'DemonSet' }), /DemonSet/],
  ['another version', 'DaemonSet', (one) => Object.assign(one, { apiVersion: 'apps/v9' }), /apps.v9/],
])(
  'a manifest with %s is refused',
  async (_, kind, change, message) => {
    await expect(validateManifests([changed(kind, change)], '1.37')).rejects.toThrow(message);
  },
  180_000,
);

test('the configuration in the manifests is one, and names its keys as the secret does', () => {
  const [map] = documentsOf('fleet.yaml').filter(({ kind }) => kind === 'ConfigMap');
  const { fleet } = ConfigFile.parse(parse(map?.data['offsite.yaml'] ?? ''));
  const text = readFileSync(join(folder, 'fleet.yaml'), 'utf8');
  for (const name of [fleet.apiKeyEnv, fleet.codecKeyEnv, 'OFFSITE_API_KEY']) {
    expect(text).toContain(`--from-literal=${name}=`);
  }
  expect(fleet.storage).toBeDefined();
});

test('workers find their configuration, their engine and a ledger that outlives the pod', () => {
  for (const manifest of workers()) {
    const { template, selector, volumeClaimTemplates = [] } = manifest.spec;
    expect(template.metadata.labels).toEqual(selector.matchLabels);
    const worker = workerOf(manifest);
    const value = (name: string) => worker.env.find((one) => one.name === name)?.value ?? '';
    const mountOf = (path: string) => {
      const mounts = worker.volumeMounts.filter(({ mountPath }) => `${path}/`.startsWith(`${mountPath}/`));
      expect(mounts).toHaveLength(1);
      return mounts[0]?.name ?? '';
    };
    const volume = (name: string) => template.spec.volumes.find((one) => one.name === name);
    expect(volume(mountOf(value('OFFSITE_CONFIG')))).toHaveProperty('configMap');
    const engine = volume(mountOf(new URL(value('DOCKER_HOST')).pathname));
    expect(engine?.hostPath ?? engine?.emptyDir).toBeDefined();
    const ledger = mountOf(value('OFFSITE_HOME'));
    const isClaimed = volumeClaimTemplates.some(({ metadata }) => metadata.name === ledger);
    expect(isClaimed || volume(ledger)?.hostPath !== undefined).toBe(true);
    for (const { name } of worker.volumeMounts) {
      expect(
        volume(name) ?? volumeClaimTemplates.find(({ metadata }) => metadata.name === name),
      ).toBeDefined();
    }
  }
});

test('only the engine of a pod is privileged, and it starts before the worker and ends after it', () => {
  for (const { spec } of workers()) {
    const { containers, initContainers } = spec.template.spec;
    const privileged = [...containers, ...initContainers].filter((one) => one.securityContext.privileged);
    for (const one of privileged) {
      expect(initContainers[0]).toBe(one);
      expect(one.restartPolicy).toBe('Always');
    }
    for (const one of [...containers, ...initContainers]) {
      if (!privileged.includes(one)) expect(one.securityContext.capabilities?.drop).toEqual(['ALL']);
    }
  }
  expect(workers().map(({ spec }) => spec.template.spec.initContainers.length)).toEqual([1, 2]);
});

test('workers start with options that the command has, and are probed where they answer', async () => {
  using place = openPlace();
  const { stdout } = await offsite(place, ['fleet', 'worker', '--help']);
  const routes = healthRoutes({ standing: () => ({ mode: 'working', running: 0, stuck: [] }) });
  const stuck = healthRoutes({ standing: () => ({ mode: 'working', running: 0, stuck: ['work'] }) });
  for (const manifest of workers()) {
    const { args, livenessProbe, readinessProbe } = workerOf(manifest);
    for (const word of args.filter((one) => one.startsWith('--'))) expect(stdout).toContain(word);
    for (const { httpGet } of [livenessProbe, readinessProbe]) {
      expect((await routes.request(httpGet.path)).status).toBe(200);
    }
    expect((await stuck.request(livenessProbe.httpGet.path)).status).toBe(503);
  }
});

test('all workers have the image that the documents say how to build', () => {
  const images = workers().map((manifest) => workerOf(manifest).image);
  expect(new Set(images).size).toBe(1);
  const doc = readFileSync(fileURLToPath(new URL('../../docs/fleet.md', import.meta.url)), 'utf8');
  expect(doc).toContain(`docker build -t ${images[0]} --build-arg FLEET=yes .`);
});
