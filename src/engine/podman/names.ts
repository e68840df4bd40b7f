/** Podman reports some ids without the prefix `sha256:`. */
export function imageId(id: string): string {
  return id === '' || id.startsWith('sha256:') ? id : `sha256:${id}`;
}

/** Where Podman keeps images that it built or imported, and where its Docker API looks for short names. */
const registries = /^(?:localhost|docker\.io(?:\/library)?)\//;

/** The name that the image has on other engines. */
export function imageName(name: string): string {
  return name.replace(registries, '');
}

/** Machines by Go's names, where the kernel's differ. */
const machines: Readonly<Record<string, string>> = { amd64: 'x86_64', arm64: 'aarch64', arm: 'armv7l' };

/** The kernel's name of a machine, as other engines report it. Podman reports Go's. */
export function machineName(name: string): string {
  return machines[name] ?? name;
}
