// Apply the selected theme before the first paint: this script is in the head, and is not a module. Without it, the system decides.
{
  const KEY = "queuectl-theme";
  const THEMES = ["system", "light", "dark"];
  const read = () => {
    try {
      return THEMES.find((one) => one === localStorage.getItem(KEY)) ?? "system";
    } catch {
      return "system"; // storage is blocked
    }
  };
  const apply = () => {
    document.documentElement.dataset.theme = read();
    for (const button of document.querySelectorAll("[data-theme-switch]")) {
      button.hidden = false;
      button.title = `Theme: ${read()}`;
      button.setAttribute("aria-label", `Theme: ${read()}`);
    }
  };
  apply();
  addEventListener("DOMContentLoaded", apply);
  addEventListener("storage", apply); // another tab
  addEventListener("click", (event) => {
    if (!event.target.closest?.("[data-theme-switch]")) return;
    try {
      localStorage.setItem(KEY, THEMES[(THEMES.indexOf(read()) + 1) % THEMES.length]);
    } catch {
      return;
    }
    apply();
  });
}
